package classes

import _ "embed" // for flannel.yaml

// FlannelVersion is the version of flannel and the tag of its image, which package nodeimage builds into node images.
// The images in flannel.yaml must have the same tag; a test checks it.
const FlannelVersion = "v0.28.4"

//go:embed flannel.yaml
var flannelManifest string

// FlannelManifest returns the objects of the network add-on as YAML documents, in the order in which they have to be
// applied. They are the same for every cluster. `slipway create cluster` and `slipway generate cluster` put them into a
// ConfigMap, from which a ClusterResourceSet applies them in the workload cluster.
func FlannelManifest() string { return flannelManifest }
