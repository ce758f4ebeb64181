package conversion

import (
	"k8s.io/apimachinery/pkg/runtime"
	bootstrapv1beta1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta1"
	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta2"
	controlplanev1beta1 "sigs.k8s.io/cluster-api/api/controlplane/kubeadm/v1beta1"
	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/kubeadm/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// kubeadmSpecs returns the kubeadm configurations of a spoke and its hub, or nil if the kind has none. The functions of
// this file complete the conversion of these kinds for moveFieldsUp and moveFieldsDown.
func kubeadmSpecs(spoke, hub runtime.Object) (*bootstrapv1beta1.KubeadmConfigSpec, *bootstrapv1.KubeadmConfigSpec) {
	switch in := spoke.(type) {
	case *bootstrapv1beta1.KubeadmConfig:
		return &in.Spec, &hub.(*bootstrapv1.KubeadmConfig).Spec
	case *bootstrapv1beta1.KubeadmConfigTemplate:
		return &in.Spec.Template.Spec, &hub.(*bootstrapv1.KubeadmConfigTemplate).Spec.Template.Spec
	case *controlplanev1beta1.KubeadmControlPlane:
		return &in.Spec.KubeadmConfigSpec, &hub.(*controlplanev1.KubeadmControlPlane).Spec.KubeadmConfigSpec
	case *controlplanev1beta1.KubeadmControlPlaneTemplate:
		out := hub.(*controlplanev1.KubeadmControlPlaneTemplate)
		return &in.Spec.Template.Spec.KubeadmConfigSpec, &out.Spec.Template.Spec.KubeadmConfigSpec
	}
	return nil, nil
}

// timeoutsUp converts two timeouts to the structure of kubeadm's newer configuration: the timeout for the API server
// applies to init and join, the timeout for discovery to join. moveFieldsUp calls it.
func timeoutsUp(in *bootstrapv1beta1.KubeadmConfigSpec, out *bootstrapv1.KubeadmConfigSpec) {
	if in.ClusterConfiguration != nil && in.ClusterConfiguration.APIServer.TimeoutForControlPlane != nil {
		seconds := clusterv1.ConvertToSeconds(in.ClusterConfiguration.APIServer.TimeoutForControlPlane)
		out.InitConfiguration.Timeouts.ControlPlaneComponentHealthCheckSeconds = seconds
		out.JoinConfiguration.Timeouts.ControlPlaneComponentHealthCheckSeconds = seconds
	}
	if in.JoinConfiguration != nil && in.JoinConfiguration.Discovery.Timeout != nil {
		seconds := clusterv1.ConvertToSeconds(in.JoinConfiguration.Discovery.Timeout)
		out.JoinConfiguration.Timeouts.DiscoverySeconds = seconds
	}
}

// partitionsUp removes the layout flag if there is also a disk layout: the hub allows only one of them, but v1beta1
// always holds the flag. moveFieldsUp calls it.
func partitionsUp(out *bootstrapv1.KubeadmConfigSpec) {
	for i := range out.DiskSetup.Partitions {
		partition := &out.DiskSetup.Partitions[i]
		if len(partition.DiskLayout) > 0 && partition.Layout != nil && !*partition.Layout {
			partition.Layout = nil
		}
	}
}

// timeoutsDown reverses timeoutsUp; if init and join differ, it uses the value for init.
func timeoutsDown(in *bootstrapv1.KubeadmConfigSpec, out *bootstrapv1beta1.KubeadmConfigSpec) {
	wait := in.InitConfiguration.Timeouts.ControlPlaneComponentHealthCheckSeconds
	if wait == nil {
		wait = in.JoinConfiguration.Timeouts.ControlPlaneComponentHealthCheckSeconds
	}
	if wait != nil {
		if out.ClusterConfiguration == nil {
			out.ClusterConfiguration = &bootstrapv1beta1.ClusterConfiguration{}
		}
		out.ClusterConfiguration.APIServer.TimeoutForControlPlane = clusterv1.ConvertFromSeconds(wait)
	}
	if seconds := in.JoinConfiguration.Timeouts.DiscoverySeconds; seconds != nil && out.JoinConfiguration != nil {
		out.JoinConfiguration.Discovery.Timeout = clusterv1.ConvertFromSeconds(seconds)
	}
}
