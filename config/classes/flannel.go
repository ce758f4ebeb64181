package classes

import (
	_ "embed" // for flannel.yaml
	"strings"
)

// FlannelVersion is the version of flannel and the tag of its image, which package nodeimage builds into node images.
// The images in flannel.yaml must have the same tag; a test checks it.
const FlannelVersion = "v0.28.4"

//go:embed flannel.yaml
var flannelManifest string

// FlannelManifest returns the objects of the network add-on as YAML documents, in the order in which they have to be
// applied. They are the same for every cluster. `slipway create cluster` and `slipway generate cluster` put them into a
// ConfigMap, from which a ClusterResourceSet applies them in the workload cluster.
func FlannelManifest() string { return flannelManifest }

// FlannelVXLANManifest returns the objects of the network add-on for nodes that may be in different subnets: packets
// between nodes are encapsulated, and the interface is the one with the address of the node. `slipway create cluster`
// and `slipway generate cluster` use it for clusters on SSH hosts. The replaced texts must exist in flannel.yaml; a
// test checks it.
func FlannelVXLANManifest() string {
	return strings.NewReplacer(
		`\"host-gw\"`, `\"vxlan\"`, "--iface=eth0", "--iface=$(NODE_IP)",
		"        env:\n        - name: NODE_NAME\n", "        env:\n        - name: NODE_IP\n          valueFrom: {fieldRef: {fieldPath: status.hostIP}}\n        - name: NODE_NAME\n",
	).Replace(flannelManifest)
}
