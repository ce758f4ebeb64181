package api

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/kubernetes/cmd/kubeadm/app/apis/kubeadm/scheme"
	kubeadmutil "k8s.io/kubernetes/cmd/kubeadm/app/util"
	kubeadmconfig "k8s.io/kubernetes/cmd/kubeadm/app/util/config"
	"k8s.io/kubernetes/cmd/kubeadm/app/util/config/strict"
	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta2"

	"k8s.io/utils/ptr"

	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/test/testkit"
)

func args() []bootstrapv1.Arg {
	return []bootstrapv1.Arg{{Name: "v", Value: ptr.To("2")}, {Name: "v", Value: ptr.To("4")}}
}

func envs(name string) *[]bootstrapv1.EnvVar {
	return &[]bootstrapv1.EnvVar{{EnvVar: corev1.EnvVar{Name: name, Value: "x"}}}
}

// fullCluster has every field of ClusterConfiguration set but those of an external etcd.
func fullCluster() bootstrapv1.ClusterConfiguration {
	volumes := []bootstrapv1.HostPathMount{{
		Name: "audit", HostPath: "/etc/audit", MountPath: "/audit", ReadOnly: ptr.To(true), PathType: corev1.HostPathDirectory,
	}}
	return bootstrapv1.ClusterConfiguration{
		ControlPlaneEndpoint: "api.example:443",
		Etcd: bootstrapv1.Etcd{Local: bootstrapv1.LocalEtcd{
			ImageRepository: "images.example/etcd", ImageTag: "3.6.8", DataDir: "/var/lib/etcd2",
			ExtraArgs: args(), ExtraEnvs: envs("E"), ServerCertSANs: []string{"etcd.example"}, PeerCertSANs: []string{"peer.example"},
		}},
		APIServer:         bootstrapv1.APIServer{ExtraArgs: args(), ExtraVolumes: volumes, ExtraEnvs: envs("A"), CertSANs: []string{"api.example"}},
		ControllerManager: bootstrapv1.ControllerManager{ExtraArgs: args(), ExtraVolumes: volumes, ExtraEnvs: envs("C")},
		Scheduler:         bootstrapv1.Scheduler{ExtraArgs: args(), ExtraVolumes: volumes, ExtraEnvs: envs("S")},
		DNS:               bootstrapv1.DNS{ImageRepository: "images.example/dns", ImageTag: "1.12"},
		CertificatesDir:   "/etc/pki", ImageRepository: "images.example",
		FeatureGates:                  map[string]bool{"RootlessControlPlane": false},
		CertificateValidityPeriodDays: 30, CACertificateValidityPeriodDays: 300,
		EncryptionAlgorithm: bootstrapv1.EncryptionAlgorithmECDSAP384,
	}
}

func externalCluster() bootstrapv1.ClusterConfiguration {
	return bootstrapv1.ClusterConfiguration{Etcd: bootstrapv1.Etcd{External: bootstrapv1.ExternalEtcd{
		Endpoints: []string{"https://etcd.example:2379"}, CAFile: "/etc/etcd/ca.crt", CertFile: "/etc/etcd/client.crt", KeyFile: "/etc/etcd/client.key",
	}}}
}

// fullInit has every field of InitConfiguration set.
func fullInit() bootstrapv1.InitConfiguration {
	join := fullJoin()
	return bootstrapv1.InitConfiguration{
		BootstrapTokens: []bootstrapv1.BootstrapToken{
			{Token: bootstrapv1.BootstrapTokenString{ID: "abcdef", Secret: "0123456789abcdef"}, Description: "d", TTLSeconds: ptr.To(int32(3600)),
				Usages: []string{"signing", "authentication"}, Groups: []string{"system:bootstrappers:x"}},
			{Token: bootstrapv1.BootstrapTokenString{ID: "fedcba", Secret: "0123456789abcdef"},
				Expires: metav1.NewTime(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))},
		},
		NodeRegistration: join.NodeRegistration,
		LocalAPIEndpoint: bootstrapv1.APIEndpoint{AdvertiseAddress: "10.0.0.2", BindPort: 6444},
		SkipPhases:       []string{"addon/kube-proxy"},
		Patches:          join.Patches,
		Timeouts:         join.Timeouts,
	}
}

func facts(version string) ClusterValues {
	return ClusterValues{
		ClusterName: "c", KubernetesVersion: version, Endpoint: "10.0.0.1:6443",
		ServiceSubnet: "10.96.0.0/16,fd00::/112", PodSubnet: "10.244.0.0/16", DNSDomain: "cluster.example",
	}
}

// accepted has kubeadm's own loader decode every document, with no field that it does not know.
func accepted(t *testing.T, file []byte) {
	t.Helper()
	documents, err := kubeadmutil.SplitConfigDocuments(file)
	if err != nil || len(documents) == 0 {
		t.Fatalf("%d documents, %v", len(documents), err)
	}
	for gvk, text := range documents {
		if err := strict.VerifyUnmarshalStrict([]*runtime.Scheme{scheme.Scheme}, gvk, text); err != nil {
			t.Errorf("%s: %v\n%s", gvk, err, text)
		}
		if _, err := runtime.Decode(scheme.Codecs.UniversalDecoder(), text); err != nil {
			t.Errorf("%s: %v\n%s", gvk, err, text)
		}
	}
}

// KB-06, KB-07, KB-08, KB-24
func TestMarshalInit(t *testing.T) {
	cases := map[string]struct {
		reason  string
		cluster bootstrapv1.ClusterConfiguration
		init    bootstrapv1.InitConfiguration
		facts   ClusterValues
	}{
		"init-full-v1beta3": {"arguments are a map, the timeout of components is the API server's, the rest is left out", fullCluster(), fullInit(), facts("v1.30.14")},
		"init-full-v1beta4": {"arguments are a list with repetitions, timeouts have a section", fullCluster(), fullInit(), facts("v1.36.3")},
		"init-facts":        {"what the Cluster knows is filled in", bootstrapv1.ClusterConfiguration{}, bootstrapv1.InitConfiguration{}, facts("v1.36.3")},
		"init-local-mode":   {"1.31 and 1.32 have the local mode of kubelets, off by default", bootstrapv1.ClusterConfiguration{}, bootstrapv1.InitConfiguration{}, facts("v1.32.0")},
		"init-external":     {"an external etcd is named by its files", externalCluster(), bootstrapv1.InitConfiguration{}, facts("v1.36.3")},
		"init-nothing":      {"nothing is made up", bootstrapv1.ClusterConfiguration{}, bootstrapv1.InitConfiguration{}, ClusterValues{KubernetesVersion: "v1.36.3"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			before := tc.cluster.DeepCopy()
			got, err := MarshalInit(tc.cluster, tc.init, tc.facts)
			if err != nil {
				t.Fatalf("%s: %v", tc.reason, err)
			}
			testkit.CompareGolden(t, filepath.Join("testdata", name+".yaml"), string(got))
			accepted(t, got)
			if diff := cmp.Diff(*before, tc.cluster); diff != "" {
				t.Errorf("what is filled in is never written back (-want +got):\n%s", diff)
			}
		})
	}
	if _, err := MarshalInit(bootstrapv1.ClusterConfiguration{}, bootstrapv1.InitConfiguration{}, ClusterValues{}); fault.KindOf(err) != fault.Invalid {
		t.Errorf("without a version: %v", err)
	}
}

// KB-07: kubeadm of this release loads the file as it would on a machine, defaults and validation included.
func TestKubeadmLoads(t *testing.T) {
	init := fullInit()
	init.NodeRegistration.Name = "node"
	init.BootstrapTokens[1].Expires = metav1.Time{} // kubeadm's defaulting adds a TTL to it, which its validation refuses
	file, err := MarshalInit(fullCluster(), init, facts("v1.36.3"))
	if err != nil {
		t.Fatal(err)
	}
	got, err := kubeadmconfig.BytesToInitConfiguration(file, true)
	if err != nil {
		t.Fatalf("%v\n%s", err, file)
	}
	if got.ClusterName != "c" || got.KubernetesVersion != "v1.36.3" || got.Networking.PodSubnet != "10.244.0.0/16" ||
		got.ControlPlaneEndpoint != "api.example:443" || got.Timeouts.ControlPlaneComponentHealthCheck.Duration != 4*time.Minute ||
		len(got.APIServer.ExtraArgs) != 2 || got.APIServer.ExtraEnvs[0].Name != "A" || len(got.BootstrapTokens) != 2 {
		t.Errorf("%+v", got)
	}
	join := fullJoin()
	join.NodeRegistration.Name, join.Discovery.File = "node", bootstrapv1.FileDiscovery{}
	if file, err = MarshalJoin(join, "v1.36.3"); err != nil {
		t.Fatal(err)
	}
	joined, err := kubeadmconfig.BytesToJoinConfiguration(file, kubeadmconfig.LoadOrDefaultConfigurationOptions{SkipCRIDetect: true})
	if err != nil || joined.ControlPlane == nil || joined.ControlPlane.LocalAPIEndpoint.BindPort != 6443 {
		t.Errorf("%v, %+v\n%s", err, joined, file)
	}
}

// KC-35
func TestFeatureGates(t *testing.T) {
	on, off := map[string]bool{"ControlPlaneKubeletLocalMode": true}, map[string]bool{"ControlPlaneKubeletLocalMode": false}
	for name, tc := range map[string]struct {
		reason      string
		given, want map[string]bool
		version     string
	}{
		"1.30":          {"it does not have the gate", nil, nil, "v1.30.0"},
		"1.31":          {"it is off there unless it is asked for", nil, on, "v1.31.0"},
		"1.31, off":     {"a user's choice stays", off, off, "v1.31.0"},
		"1.32, others":  {"other gates stay", map[string]bool{"x": true}, map[string]bool{"x": true, "ControlPlaneKubeletLocalMode": true}, "v1.32.9"},
		"1.33":          {"it is on there", nil, nil, "v1.33.0"},
		"1.35, on":      {"which may be said", on, on, "v1.35.0"},
		"1.36, on":      {"kubeadm does not know the gate any more", on, map[string]bool{}, "v1.36.0"},
		"1.36, off":     {"kubeadm says so, which is better than silence", off, off, "v1.36.0"},
		"not a version": {"left alone", on, on, "latest"},
	} {
		before := map[string]bool{}
		for gate, value := range tc.given {
			before[gate] = value
		}
		if diff := cmp.Diff(tc.want, featureGates(tc.given, tc.version)); diff != "" {
			t.Errorf("%s: %s (-want +got):\n%s", name, tc.reason, diff)
		}
		if tc.given != nil && !cmp.Equal(before, tc.given) {
			t.Errorf("%s: the argument was changed", name)
		}
	}
}

// KC-37: a machine of an older version joins with the file that its own kubeadm reads.
func TestJoinOfAnOlderVersion(t *testing.T) {
	join := fullJoin()
	join.Discovery.File = bootstrapv1.FileDiscovery{}
	for version, want := range map[string]string{"v1.30.0": "v1beta3", "v1.31.0": "v1beta4"} {
		file, err := MarshalJoin(join, version)
		if err != nil {
			t.Fatal(err)
		}
		accepted(t, file)
		documents, err := kubeadmutil.SplitConfigDocuments(file)
		if err != nil {
			t.Fatal(err)
		}
		for gvk := range documents {
			if gvk.Version != want {
				t.Errorf("%s: %s", version, gvk)
			}
		}
	}
}
