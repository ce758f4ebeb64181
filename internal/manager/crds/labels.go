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
	// contractV1Beta1 and contractV1Beta2 are the labels that map a Cluster API contract version to the
	// served API versions that implement it.
	contractV1Beta1 = "cluster.x-k8s.io/v1beta1"
	contractV1Beta2 = "cluster.x-k8s.io/v1beta2"

	// clusterctlLabel marks CRDs that clusterctl manages and whose objects it moves.
	clusterctlLabel = "clusterctl.cluster.x-k8s.io"
)

// labelsOf returns the labels that Cluster API's provider contract requires on a CRD: the contract versions, the
// provider name and the clusterctl label. [All] adds them to every CRD; other managers and clusterctl read them, so
// they must stay.
//
// Slipway's own kinds only implement contract v1beta2. LocalMachinePool also has the v1beta1 field status.ready,
// because Cluster API up to v1.14 reads it regardless of the label. LocalMachinePool lacks the other fields of contract
// v1beta1, so its CRD does not have the v1beta1 label.
func labelsOf(crd *apiextensionsv1.CustomResourceDefinition) map[string]string {
	labels := map[string]string{
		clusterv1.ProviderNameLabel: string(providerset.OfCRD(crd.Name)), clusterctlLabel: "",
		contractV1Beta1: "v1beta1", contractV1Beta2: "v1beta2",
	}
	switch crd.Spec.Group {
	case runtimev1.GroupVersion.Group: // this group has no v1beta1
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

// hasConversion reports whether a CRD has several versions and therefore needs the conversion webhook. [Of] checks it
// for each CRD.
func hasConversion(crd *apiextensionsv1.CustomResourceDefinition) bool {
	return len(crd.Spec.Versions) > 1
}
