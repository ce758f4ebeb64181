// Package sdk is the root of the public Go module of Slipway. It embeds the source of the packages for extensions
// ([Source]), so that `slipway extension init` creates projects that build with exactly the SDK of the binary.
// Extensions import the packages in subdirectories instead.
package sdk

import "embed"

// Module is the path of this module.
const Module = "github.com/slipwayhq/slipway/sdk"

//go:embed LICENSE go.mod go.sum extension hooks
var source embed.FS

// Source returns the source of the packages extension and hooks with all their subpackages, including tests, and the
// go.mod, go.sum and LICENSE of the module.
func Source() embed.FS { return source }
