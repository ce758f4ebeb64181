package api

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta2"

	"github.com/slipwayhq/slipway/internal/fault"
)

// MarshalJoin returns the JoinConfiguration file for the kubeadm of the Kubernetes version, for the bootstrap data of a
// Machine that joins as a worker or as a control plane node. The output must be deterministic, and valid for the
// kubeadm of the version: the tests compare it with golden files and load it with kubeadm. The error is an Invalid
// fault if the version is malformed. Package bootstrap/render calls it.
func MarshalJoin(join bootstrapv1.JoinConfiguration, kubernetesVersion string) ([]byte, error) {
	api, err := apiVersionFor(kubernetesVersion)
	if err != nil {
		return nil, err
	}
	out, err := YAMLMarshal(joinFor(api, join))
	if err != nil {
		return nil, fault.New(fault.Bug, "InvalidJoinConfiguration", "the join configuration cannot be encoded").From(err)
	}
	return out, nil
}

func joinFor(api apiVersion, in bootstrapv1.JoinConfiguration) joinConfiguration {
	out := joinConfiguration{
		APIVersion: api, Kind: "JoinConfiguration",
		NodeRegistration: registrationFor(api, in.NodeRegistration),
		CACertPath:       in.CACertPath,
		Discovery:        discoveryOf(in.Discovery),
		ControlPlane:     controlPlaneOf(in.ControlPlane),
		SkipPhases:       in.SkipPhases,
	}
	if in.Patches.Directory != "" {
		out.Patches = &patches{Directory: in.Patches.Directory}
	}
	if api == v1Beta3 {
		out.Discovery.Timeout = seconds(in.Timeouts.DiscoverySeconds)
	} else {
		out.Timeouts = timeoutsOf(in.Timeouts)
	}
	return out
}

func registrationFor(api apiVersion, in bootstrapv1.NodeRegistrationOptions) nodeRegistration {
	out := nodeRegistration{
		Name: in.Name, CRISocket: in.CRISocket,
		IgnorePreflightErrors: in.IgnorePreflightErrors, ImagePullPolicy: in.ImagePullPolicy,
	}
	if in.Taints != nil {
		out.Taints = append(out.Taints, *in.Taints...)
		if out.Taints == nil {
			out.Taints = (*in.Taints)[:0:0]
		}
	}
	if api == v1Beta3 {
		out.KubeletExtraArgs = argMap(in.KubeletExtraArgs)
		return out
	}
	out.KubeletExtraArgs, out.ImagePullSerial = argList(in.KubeletExtraArgs), in.ImagePullSerial
	return out
}

// argList preserves order and repetitions. It returns nil if there are no arguments.
func argList(in []bootstrapv1.Arg) any {
	if len(in) == 0 {
		return nil
	}
	out := make([]arg, 0, len(in))
	for _, a := range in {
		out = append(out, arg{Name: a.Name, Value: ptr.Deref(a.Value, "")})
	}
	return out
}

// argMap holds one value per name. The last one takes precedence, as on a command line.
func argMap(in []bootstrapv1.Arg) any {
	if len(in) == 0 {
		return nil
	}
	out := make(map[string]string, len(in))
	for _, a := range in {
		out[a.Name] = ptr.Deref(a.Value, "")
	}
	return out
}

func discoveryOf(in bootstrapv1.Discovery) discovery {
	out := discovery{TLSBootstrapToken: in.TLSBootstrapToken}
	if in.BootstrapToken.IsDefined() {
		skip := in.BootstrapToken.UnsafeSkipCAVerification
		out.BootstrapToken = &bootstrapTokenDiscovery{
			Token: in.BootstrapToken.Token, APIServerEndpoint: in.BootstrapToken.APIServerEndpoint,
			CACertHashes: in.BootstrapToken.CACertHashes, UnsafeSkipCAVerification: skip != nil && *skip,
		}
	}
	if in.File.IsDefined() {
		out.File = &fileDiscovery{KubeConfigPath: in.File.KubeConfigPath}
	}
	return out
}

func controlPlaneOf(in *bootstrapv1.JoinControlPlane) *joinControlPlane {
	if in == nil {
		return nil
	}
	return &joinControlPlane{LocalAPIEndpoint: endpointOf(in.LocalAPIEndpoint)}
}

func timeoutsOf(in bootstrapv1.Timeouts) *timeouts {
	out := timeouts{
		ControlPlaneComponentHealthCheck: seconds(in.ControlPlaneComponentHealthCheckSeconds),
		KubeletHealthCheck:               seconds(in.KubeletHealthCheckSeconds),
		KubernetesAPICall:                seconds(in.KubernetesAPICallSeconds),
		EtcdAPICall:                      seconds(in.EtcdAPICallSeconds),
		TLSBootstrap:                     seconds(in.TLSBootstrapSeconds),
		Discovery:                        seconds(in.DiscoverySeconds),
	}
	if out == (timeouts{}) {
		return nil
	}
	return &out
}

func seconds(n *int32) *metav1.Duration {
	if n == nil {
		return nil
	}
	return &metav1.Duration{Duration: time.Duration(*n) * time.Second}
}
