package template

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	addonsv1 "sigs.k8s.io/cluster-api/api/addons/v1beta2"

	"github.com/slipwayhq/slipway/config/classes"
)

// networkLabel on a Cluster selects its Pod network: with the value "flannel", the ClusterResourceSet of the manifest
// installs it. The Pod network of a Cluster without the label is not managed.
const networkLabel = "slipway.dev/cni"

const (
	flannelNetwork = "flannel"
	// networkName is the name of the ClusterResourceSet and its ConfigMap.
	networkName = "slipway-flannel"
	networkKey  = "flannel.yaml"
)

// IsShared reports whether an object of a manifest is shared by all clusters of its namespace. Such an object may exist
// already, and remains when a cluster is deleted.
func IsShared(o *unstructured.Unstructured) bool {
	return o.GetName() == networkName && (o.GetKind() == "ClusterResourceSet" || o.GetKind() == "ConfigMap")
}

// network returns a ClusterResourceSet that installs the Pod network in every cluster with [networkLabel]. The manifest
// of [ClusterManifest.Objects] includes it.
func (c ClusterManifest) network() *addonsv1.ClusterResourceSet {
	return &addonsv1.ClusterResourceSet{
		TypeMeta:   metav1.TypeMeta{APIVersion: addonsv1.GroupVersion.String(), Kind: "ClusterResourceSet"},
		ObjectMeta: c.meta(networkName),
		Spec: addonsv1.ClusterResourceSetSpec{
			ClusterSelector: metav1.LabelSelector{MatchLabels: map[string]string{networkLabel: flannelNetwork}},
			Resources:       []addonsv1.ResourceRef{{Kind: "ConfigMap", Name: networkName}},
			Strategy:        string(addonsv1.ClusterResourceSetStrategyApplyOnce),
		},
	}
}

func (c ClusterManifest) networkSource() *corev1.ConfigMap {
	return &corev1.ConfigMap{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
		ObjectMeta: c.meta(networkName),
		Data:       map[string]string{networkKey: classes.FlannelManifest()},
	}
}
