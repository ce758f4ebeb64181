// Package sdk is the root of the public Go module of Slipway, and holds the source of what an extension needs of it.
//
// Does: gives `slipway extension init` the source of this module, so that a project it writes builds with exactly the
// SDK that the binary was built with, wherever the module can be fetched from.
//
// Never: is needed by an extension itself: import the packages below it.
//
// Read first: [Source].
package sdk

import "embed"

// Module is the path of this module.
const Module = "github.com/slipwayhq/slipway/sdk"

//go:embed LICENSE go.mod go.sum extension hooks
var source embed.FS

// Source is the source of the packages extension and hooks with all below them, tests included, and the go.mod, go.sum
// and LICENSE of the module.
func Source() embed.FS { return source }
