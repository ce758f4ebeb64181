package flannel

import _ "embed" // for the manifest

// Version is flannel's, and the tag of its image.
const Version = "v0.28.4"

//go:embed manifests.yaml
var manifest string

// Manifest returns the add-on's objects as YAML documents, in the order in which to apply them. They are the same for
// every cluster.
func Manifest() string { return manifest }
