package template

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	addonsv1 "sigs.k8s.io/cluster-api/api/addons/v1beta2"

	"github.com/slipwayhq/slipway/config/classes"
)

// networkLabel on a Cluster selects its Pod network: the ClusterResourceSet of the manifest with the same value
// installs it. The Pod network of a Cluster without the label is not managed. Existing Clusters have it, so neither the
// label nor its values must change.
const networkLabel = "slipway.dev/cni"

const (
	flannelNetwork      = "flannel"
	flannelVXLANNetwork = "flannel-vxlan"
	// networkName and networkVXLANName are the names of a ClusterResourceSet and its ConfigMap.
	networkName      = "slipway-flannel"
	networkVXLANName = "slipway-flannel-vxlan"
	networkKey       = "flannel.yaml"
)

// IsShared reports whether an object of a manifest is shared by all clusters of its namespace. Such an object may exist
// already, and remains when a cluster is deleted. Package operate/create therefore does not reject an object that
// exists.
func IsShared(o *unstructured.Unstructured) bool {
	name := o.GetName()
	return (name == networkName || name == networkVXLANName) && (o.GetKind() == "ClusterResourceSet" || o.GetKind() == "ConfigMap")
}

// podNetwork returns the Pod network of the cluster, empty for none. Nodes that are machines of others may be in
// different subnets, so their packets are encapsulated.
func (c ClusterManifest) podNetwork() string {
	switch {
	case c.Subnet.IsValid():
		return flannelNetwork
	case c.Hosts:
		return flannelVXLANNetwork
	}
	return ""
}

// networkName returns the name of the ClusterResourceSet that installs the Pod network.
func (c ClusterManifest) networkName() string {
	if c.podNetwork() == flannelVXLANNetwork {
		return networkVXLANName
	}
	return networkName
}

// network returns a ClusterResourceSet that installs the Pod network in every cluster with [networkLabel]. The manifest
// of [ClusterManifest.Objects] includes it.
func (c ClusterManifest) network() *addonsv1.ClusterResourceSet {
	name := c.networkName()
	return &addonsv1.ClusterResourceSet{
		TypeMeta:   metav1.TypeMeta{APIVersion: addonsv1.GroupVersion.String(), Kind: "ClusterResourceSet"},
		ObjectMeta: c.meta(name),
		Spec: addonsv1.ClusterResourceSetSpec{
			ClusterSelector: metav1.LabelSelector{MatchLabels: map[string]string{networkLabel: c.podNetwork()}},
			Resources:       []addonsv1.ResourceRef{{Kind: "ConfigMap", Name: name}},
			Strategy:        string(addonsv1.ClusterResourceSetStrategyApplyOnce),
		},
	}
}

// networkSource returns the ConfigMap with the manifest of the Pod network. [ClusterManifest.Objects] calls it.
func (c ClusterManifest) networkSource() *corev1.ConfigMap {
	manifest := classes.FlannelManifest()
	if c.podNetwork() == flannelVXLANNetwork {
		manifest = classes.FlannelVXLANManifest()
	}
	return &corev1.ConfigMap{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
		ObjectMeta: c.meta(c.networkName()),
		Data:       map[string]string{networkKey: manifest},
	}
}
