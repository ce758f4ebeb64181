// Package docs embeds the pages of this directory, so that `slipway docs` can print them without the repository.
package docs

import "embed"

// Files contains the pages, and the manifests that they refer to.
//
//go:embed *.md *.yaml
var Files embed.FS
