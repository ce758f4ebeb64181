package classes

import _ "embed" // for flannel.yaml

// FlannelVersion is the version of flannel and the tag of its image.
const FlannelVersion = "v0.28.4"

//go:embed flannel.yaml
var flannelManifest string

// FlannelManifest returns the objects of the network add-on as YAML documents, in the order in which they have to be
// applied. They are the same for every cluster.
func FlannelManifest() string { return flannelManifest }
