// Package examples has the manifests of this folder.
//
// Does: carries them in the binary, so that cluster templates can be made from them.
//
// Never: changes them.
//
// Read first: README.md.
package examples

import "embed"

// Files are the manifests.
//
//go:embed *.yaml
var Files embed.FS
