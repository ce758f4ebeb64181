package conversion

import (
	"k8s.io/apimachinery/pkg/runtime"
	bootstrapv1beta1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta1"
	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta2"
	controlplanev1beta1 "sigs.k8s.io/cluster-api/api/controlplane/kubeadm/v1beta1"
	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/kubeadm/v1beta2"
	clusterv1beta1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ipamv1alpha1 "sigs.k8s.io/cluster-api/api/ipam/v1alpha1"
	ipamv1 "sigs.k8s.io/cluster-api/api/ipam/v1beta2"
)

// moveFieldsUp converts fields that have a different place in the hub and that the API module leaves to its caller:
// flags that became status.initialization, and minReadySeconds, which became a field of the Machine spec. The API
// module converts the flags in the other direction. [Converter] calls it in each conversion of a spoke. The cases
// follow from the types of the API module; random objects in the tests find a missing one.
func moveFieldsUp(spoke, hub runtime.Object) {
	if in, out := kubeadmSpecs(spoke, hub); in != nil {
		timeoutsUp(in, out)
		partitionsUp(out)
	}
	switch in := spoke.(type) {
	case *clusterv1beta1.Cluster:
		out := &hub.(*clusterv1.Cluster).Status.Initialization
		out.InfrastructureProvisioned = orNil(in.Status.InfrastructureReady)
		out.ControlPlaneInitialized = orNil(in.Status.ControlPlaneReady)
	case *clusterv1beta1.Machine:
		out := &hub.(*clusterv1.Machine).Status.Initialization
		out.InfrastructureProvisioned = orNil(in.Status.InfrastructureReady)
		out.BootstrapDataSecretCreated = orNil(in.Status.BootstrapReady)
	case *clusterv1beta1.MachineSet:
		hub.(*clusterv1.MachineSet).Spec.Template.Spec.MinReadySeconds = orNil(in.Spec.MinReadySeconds)
	case *clusterv1beta1.MachineDeployment:
		hub.(*clusterv1.MachineDeployment).Spec.Template.Spec.MinReadySeconds = in.Spec.MinReadySeconds
	case *clusterv1beta1.MachinePool:
		out := hub.(*clusterv1.MachinePool)
		out.Spec.Template.Spec.MinReadySeconds = in.Spec.MinReadySeconds
		out.Status.Initialization.InfrastructureProvisioned = orNil(in.Status.InfrastructureReady)
		out.Status.Initialization.BootstrapDataSecretCreated = orNil(in.Status.BootstrapReady)
	case *bootstrapv1beta1.KubeadmConfig:
		hub.(*bootstrapv1.KubeadmConfig).Status.Initialization.DataSecretCreated = orNil(in.Status.Ready)
	case *controlplanev1beta1.KubeadmControlPlane:
		out := hub.(*controlplanev1.KubeadmControlPlane)
		out.Status.Initialization.ControlPlaneInitialized = orNil(in.Status.Initialized)
	case *ipamv1alpha1.IPAddressClaim:
		claimConditionsUp(in, hub.(*ipamv1.IPAddressClaim))
	}
}

// moveFieldsDown reverses moveFieldsUp. Each conversion of a hub calls it.
func moveFieldsDown(hub, spoke runtime.Object) {
	if out, in := kubeadmSpecs(spoke, hub); in != nil {
		timeoutsDown(in, out)
	}
	switch in := hub.(type) {
	case *clusterv1.MachineSet:
		if seconds := in.Spec.Template.Spec.MinReadySeconds; seconds != nil {
			spoke.(*clusterv1beta1.MachineSet).Spec.MinReadySeconds = *seconds
		}
	case *clusterv1.MachineDeployment:
		spoke.(*clusterv1beta1.MachineDeployment).Spec.MinReadySeconds = in.Spec.Template.Spec.MinReadySeconds
	case *clusterv1.MachinePool:
		spoke.(*clusterv1beta1.MachinePool).Spec.MinReadySeconds = in.Spec.Template.Spec.MinReadySeconds
	case *ipamv1.IPAddressClaim:
		if out, isOldest := spoke.(*ipamv1alpha1.IPAddressClaim); isOldest {
			claimConditionsDown(in, out)
		}
	}
}

// claimConditionsUp converts the conditions of the oldest version of IPAddressClaim to the deprecated conditions of the
// hub, as the API module does for v1beta1.
func claimConditionsUp(in *ipamv1alpha1.IPAddressClaim, out *ipamv1.IPAddressClaim) {
	out.Status.Conditions = nil
	if in.Status.Conditions == nil {
		return
	}
	old := &ipamv1.IPAddressClaimV1Beta1DeprecatedStatus{}
	clusterv1beta1.Convert_v1beta1_Conditions_To_v1beta2_Deprecated_V1Beta1_Conditions(&in.Status.Conditions, &old.Conditions)
	out.Status.Deprecated = &ipamv1.IPAddressClaimDeprecatedStatus{V1Beta1: old}
}

func claimConditionsDown(in *ipamv1.IPAddressClaim, out *ipamv1alpha1.IPAddressClaim) {
	out.Status.Conditions = nil
	if in.Status.Deprecated == nil || in.Status.Deprecated.V1Beta1 == nil {
		return
	}
	old := in.Status.Deprecated.V1Beta1.Conditions
	clusterv1beta1.Convert_v1beta2_Deprecated_V1Beta1_Conditions_To_v1beta1_Conditions(&old, &out.Status.Conditions)
}

// orNil returns a pointer to a value, or nil for the zero value.
func orNil[T comparable](value T) *T {
	if value == *new(T) {
		return nil
	}
	return &value
}
