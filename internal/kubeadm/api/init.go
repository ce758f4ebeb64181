package api

import (
	"maps"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta2"

	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/version"
)

// ClusterValues are the values of a ClusterConfiguration that do not come from the KubeadmConfig. kubeadm chooses the
// defaults of empty fields. The KubeadmConfig controller fills them in through package bootstrap/render.
type ClusterValues struct {
	ClusterName string
	// KubernetesVersion of the Machine, such as v1.36.3. It also determines the API version.
	KubernetesVersion string
	// Endpoint of the API server as host:port, used if the configuration has none.
	Endpoint string
	// ServiceSubnet and PodSubnet are comma-separated CIDRs.
	ServiceSubnet, PodSubnet string
	DNSDomain                string
}

// MarshalInit returns the configuration file of kubeadm init, a ClusterConfiguration and an InitConfiguration, for the
// bootstrap data of the first control plane Machine. The output must be deterministic, and valid for the kubeadm of the
// version: the tests compare it with golden files and load it with kubeadm. The error is an Invalid fault if the
// version is malformed. Package bootstrap/render calls it.
func MarshalInit(cluster bootstrapv1.ClusterConfiguration, init bootstrapv1.InitConfiguration, facts ClusterValues) ([]byte, error) {
	api, err := apiVersionFor(facts.KubernetesVersion)
	if err != nil {
		return nil, err
	}
	clusterPart := clusterFor(api, cluster, facts)
	if api == v1Beta3 {
		clusterPart.APIServer.TimeoutForControlPlane = seconds(init.Timeouts.ControlPlaneComponentHealthCheckSeconds)
	}
	var out []byte
	for _, document := range []any{clusterPart, initFor(api, init)} {
		text, err := YAMLMarshal(document)
		if err != nil {
			return nil, fault.New(fault.Bug, "InvalidInitConfiguration", "the init configuration cannot be encoded").From(err)
		}
		out = append(append(out, "---\n"...), text...)
	}
	return out, nil
}

func clusterFor(api apiVersion, in bootstrapv1.ClusterConfiguration, facts ClusterValues) clusterConfiguration {
	out := clusterConfiguration{
		APIVersion: api, Kind: "ClusterConfiguration",
		ClusterName: facts.ClusterName, KubernetesVersion: facts.KubernetesVersion,
		ControlPlaneEndpoint: in.ControlPlaneEndpoint,
		Networking:           networking{ServiceSubnet: facts.ServiceSubnet, PodSubnet: facts.PodSubnet, DNSDomain: facts.DNSDomain},
		Etcd:                 etcdFor(api, in.Etcd),
		APIServer: apiServer{
			component: componentFor(api, bootstrapv1.ControllerManager{
				ExtraArgs: in.APIServer.ExtraArgs, ExtraVolumes: in.APIServer.ExtraVolumes, ExtraEnvs: in.APIServer.ExtraEnvs}),
			CertSANs: in.APIServer.CertSANs,
		},
		ControllerManager: componentFor(api, in.ControllerManager),
		Scheduler:         componentFor(api, bootstrapv1.ControllerManager(in.Scheduler)),
		DNS:               image{in.DNS.ImageRepository, in.DNS.ImageTag},
		CertificatesDir:   in.CertificatesDir,
		ImageRepository:   in.ImageRepository,
		FeatureGates:      featureGates(in.FeatureGates, facts.KubernetesVersion),
	}
	if out.ControlPlaneEndpoint == "" {
		out.ControlPlaneEndpoint = facts.Endpoint
	}
	if api != v1Beta3 {
		out.EncryptionAlgorithm = string(in.EncryptionAlgorithm)
		out.CertificateValidityPeriod = days(in.CertificateValidityPeriodDays)
		out.CACertificateValidityPeriod = days(in.CACertificateValidityPeriodDays)
	}
	return out
}

// localMode is kubeadm's feature gate for kubelets of a control plane that connect to the API server on the same
// machine. An upgrade of a control plane requires it, because a kubelet must not connect to an API server that is older
// than itself. Package kubeadm/controlplane has the same constant.
const localMode = "ControlPlaneKubeletLocalMode"

// featureGates returns the feature gates of kubeadm for a Kubernetes version. It enables the local mode of kubelets
// in 1.31 and 1.32, where it is off by default, and removes the gate from 1.36, where kubeadm rejects it. The
// argument is not modified.
func featureGates(given map[string]bool, kubernetesVersion string) map[string]bool {
	v, err := version.ParseSemantic(kubernetesVersion)
	if err != nil || v.Major != 1 {
		return given
	}
	on, set := given[localMode]
	out := maps.Clone(given)
	switch minor := v.Minor; {
	case !set && (minor == 31 || minor == 32):
		if out == nil {
			out = map[string]bool{}
		}
		out[localMode] = true
	case on && minor >= 36:
		delete(out, localMode)
	}
	return out
}

func etcdFor(api apiVersion, in bootstrapv1.Etcd) etcd {
	var out etcd
	if e := in.External; e.IsDefined() {
		out.External = &externalEtcd{Endpoints: e.Endpoints, CAFile: e.CAFile, CertFile: e.CertFile, KeyFile: e.KeyFile}
	}
	if e := in.Local; e.IsDefined() {
		out.Local = &localEtcd{
			image: image{e.ImageRepository, e.ImageTag}, DataDir: e.DataDir,
			ExtraArgs: argsFor(api, e.ExtraArgs), ExtraEnvs: envsFor(api, e.ExtraEnvs),
			ServerCertSANs: e.ServerCertSANs, PeerCertSANs: e.PeerCertSANs,
		}
	}
	return out
}

// componentFor converts the fields that the three components of a control plane share.
func componentFor(api apiVersion, in bootstrapv1.ControllerManager) component {
	out := component{ExtraArgs: argsFor(api, in.ExtraArgs), ExtraEnvs: envsFor(api, in.ExtraEnvs)}
	for _, m := range in.ExtraVolumes {
		out.ExtraVolumes = append(out.ExtraVolumes, hostPathMount{
			Name: m.Name, HostPath: m.HostPath, MountPath: m.MountPath, ReadOnly: m.ReadOnly != nil && *m.ReadOnly, PathType: m.PathType,
		})
	}
	return out
}

func argsFor(api apiVersion, in []bootstrapv1.Arg) any {
	if api == v1Beta3 {
		return argMap(in)
	}
	return argList(in)
}

func envsFor(api apiVersion, in *[]bootstrapv1.EnvVar) []corev1.EnvVar {
	if in == nil || api == v1Beta3 {
		return nil
	}
	var out []corev1.EnvVar
	for _, e := range *in {
		out = append(out, e.EnvVar)
	}
	return out
}

func initFor(api apiVersion, in bootstrapv1.InitConfiguration) initConfiguration {
	out := initConfiguration{
		APIVersion: api, Kind: "InitConfiguration",
		NodeRegistration: registrationFor(api, in.NodeRegistration),
		LocalAPIEndpoint: endpointOf(in.LocalAPIEndpoint),
		SkipPhases:       in.SkipPhases,
	}
	for _, t := range in.BootstrapTokens {
		out.BootstrapTokens = append(out.BootstrapTokens, tokenOf(t))
	}
	if in.Patches.Directory != "" {
		out.Patches = &patches{Directory: in.Patches.Directory}
	}
	if api != v1Beta3 {
		out.Timeouts = timeoutsOf(in.Timeouts)
	}
	return out
}

func tokenOf(in bootstrapv1.BootstrapToken) bootstrapToken {
	out := bootstrapToken{
		Token: in.Token.String(), Description: in.Description, TTL: seconds(in.TTLSeconds), Usages: in.Usages, Groups: in.Groups,
	}
	if !in.Expires.IsZero() {
		out.Expires = &in.Expires
	}
	return out
}

func endpointOf(in bootstrapv1.APIEndpoint) *apiEndpoint {
	if !in.IsDefined() {
		return nil
	}
	return &apiEndpoint{AdvertiseAddress: in.AdvertiseAddress, BindPort: in.BindPort}
}

func days(n int32) *metav1.Duration {
	if n == 0 {
		return nil
	}
	return &metav1.Duration{Duration: time.Duration(n) * 24 * time.Hour}
}
