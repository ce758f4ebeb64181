package flannel

import _ "embed" // for the manifest

// Version is the version of flannel and the tag of its image.
const Version = "v0.28.4"

//go:embed manifests.yaml
var manifest string

// Manifest returns the objects of the add-on as YAML documents, in the order in which they have to be applied. They are
// the same for every cluster.
func Manifest() string { return manifest }
