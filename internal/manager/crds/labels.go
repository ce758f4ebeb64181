package crds

import (
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	runtimev1 "sigs.k8s.io/cluster-api/api/runtime/v1beta2"

	hostedv1 "github.com/slipwayhq/slipway/api/controlplane/v1alpha1"
	localv1 "github.com/slipwayhq/slipway/api/infrastructure/v1alpha1"
	"github.com/slipwayhq/slipway/internal/providerset"
)

const (
	// contractV1Beta1 and contractV1Beta2 are the labels that tell which served versions of a kind follow a version
	// of Cluster API's contracts.
	contractV1Beta1 = "cluster.x-k8s.io/v1beta1"
	contractV1Beta2 = "cluster.x-k8s.io/v1beta2"

	// clusterctlLabel marks what clusterctl manages and moves.
	clusterctlLabel = "clusterctl.cluster.x-k8s.io"
)

// labelsOf returns the labels of a CRD: the contract versions, the provider it belongs to, and clusterctl's mark.
//
// Our own kinds follow contract v1beta2 only. LocalMachinePool has the v1beta1 field status.ready besides, because
// Cluster API reads it up to v1.14 whatever the label says; the other fields of contract v1beta1 are not
// there, so that label is not either.
func labelsOf(crd *apiextensionsv1.CustomResourceDefinition) map[string]string {
	labels := map[string]string{
		clusterv1.ProviderNameLabel: string(providerset.OfCRD(crd.Name)), clusterctlLabel: "",
		contractV1Beta1: "v1beta1", contractV1Beta2: "v1beta2",
	}
	switch crd.Spec.Group {
	case runtimev1.GroupVersion.Group: // there is no v1beta1 of it
		labels[contractV1Beta1] = "v1alpha1"
	case localv1.GroupVersion.Group:
		delete(labels, contractV1Beta1)
		labels[contractV1Beta2] = localv1.GroupVersion.Version
	case hostedv1.GroupVersion.Group:
		delete(labels, contractV1Beta1)
		labels[contractV1Beta2] = hostedv1.GroupVersion.Version
	}
	return labels
}

// hasConversion tells whether a CRD has several versions, which only the conversion webhook can translate.
func hasConversion(crd *apiextensionsv1.CustomResourceDefinition) bool {
	return len(crd.Spec.Versions) > 1
}
