package crds

import (
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	addonsv1 "sigs.k8s.io/cluster-api/api/addons/v1beta2"
	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta2"
	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/kubeadm/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ipamv1 "sigs.k8s.io/cluster-api/api/ipam/v1beta2"
	runtimev1 "sigs.k8s.io/cluster-api/api/runtime/v1beta2"

	hostedv1 "github.com/slipwayhq/slipway/api/controlplane/v1alpha1"
	localv1 "github.com/slipwayhq/slipway/api/infrastructure/v1alpha1"
)

const (
	// contractV1Beta1 and contractV1Beta2 are the labels that tell which served versions of a kind follow a version
	// of Cluster API's contracts (CT-04).
	contractV1Beta1 = "cluster.x-k8s.io/v1beta1"
	contractV1Beta2 = "cluster.x-k8s.io/v1beta2"

	// clusterctlLabel marks what clusterctl manages and moves.
	clusterctlLabel = "clusterctl.cluster.x-k8s.io"
)

// labelsOf returns the labels of the CRDs of one API group: the contract versions, the provider they belong to, and
// clusterctl's mark. It is empty for a group that is not ours to serve.
//
// Our own kinds follow contract v1beta2 only. LocalMachinePool has the v1beta1 field status.ready besides, because
// Cluster API reads it up to v1.14 whatever the label says (IP2-06); the other fields of contract v1beta1 are not
// there, so that label is not either.
func labelsOf(group string) map[string]string {
	upstream := func(provider string) map[string]string {
		return map[string]string{
			clusterv1.ProviderNameLabel: provider,
			clusterctlLabel:             "",
			contractV1Beta1:             "v1beta1",
			contractV1Beta2:             "v1beta2",
		}
	}
	own := func(provider, version string) map[string]string {
		return map[string]string{
			clusterv1.ProviderNameLabel: provider,
			clusterctlLabel:             "",
			contractV1Beta2:             version,
		}
	}
	switch group {
	case clusterv1.GroupVersion.Group, addonsv1.GroupVersion.Group, ipamv1.GroupVersion.Group:
		return upstream("cluster-api")
	case runtimev1.GroupVersion.Group:
		// There is no v1beta1 of this group.
		labels := upstream("cluster-api")
		labels[contractV1Beta1] = "v1alpha1"
		return labels
	case bootstrapv1.GroupVersion.Group:
		return upstream("bootstrap-kubeadm")
	case controlplanev1.GroupVersion.Group:
		return upstream("control-plane-kubeadm")
	case localv1.GroupVersion.Group:
		return own("infrastructure-local", localv1.GroupVersion.Version)
	case hostedv1.GroupVersion.Group:
		return own("control-plane-hosted", hostedv1.GroupVersion.Version)
	}
	return nil
}

// hasConversion tells whether a CRD has several versions, which only the conversion webhook can translate.
func hasConversion(crd *apiextensionsv1.CustomResourceDefinition) bool {
	return len(crd.Spec.Versions) > 1
}
