// Package examples embeds the example manifests in this directory, from which cluster templates are generated.
package examples

import "embed"

// Files contains the manifests.
//
//go:embed *.yaml
var Files embed.FS
