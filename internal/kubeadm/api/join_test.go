package api

import (
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta2"
	"sigs.k8s.io/yaml"

	"k8s.io/utils/ptr"

	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/test/testkit"
)

// fullJoin has every field of JoinConfiguration set.
func fullJoin() bootstrapv1.JoinConfiguration {
	return bootstrapv1.JoinConfiguration{
		NodeRegistration: bootstrapv1.NodeRegistrationOptions{
			Name: "{{ ds.meta_data.local_hostname }}", CRISocket: "unix:///run/containerd/containerd.sock",
			Taints: &[]corev1.Taint{{Key: "a", Value: "b", Effect: corev1.TaintEffectNoExecute}},
			KubeletExtraArgs: []bootstrapv1.Arg{
				{Name: "node-labels", Value: ptr.To("x=y")}, {Name: "v", Value: ptr.To("2")}, {Name: "v", Value: ptr.To("4")}, {Name: "empty"},
			},
			IgnorePreflightErrors: []string{"SystemVerification"},
			ImagePullPolicy:       corev1.PullNever, ImagePullSerial: ptr.To(false),
		},
		CACertPath: "/etc/kubernetes/pki/ca.crt",
		Discovery: bootstrapv1.Discovery{
			BootstrapToken: bootstrapv1.BootstrapTokenDiscovery{
				Token: "abcdef.0123456789abcdef", APIServerEndpoint: "10.0.0.1:6443",
				CACertHashes: []string{"sha256:00"}, UnsafeSkipCAVerification: ptr.To(true),
			},
			File:              bootstrapv1.FileDiscovery{KubeConfigPath: "/etc/kubeconfig"},
			TLSBootstrapToken: "fedcba.0123456789abcdef",
		},
		ControlPlane: &bootstrapv1.JoinControlPlane{
			LocalAPIEndpoint: bootstrapv1.APIEndpoint{AdvertiseAddress: "10.0.0.2", BindPort: 6443},
		},
		SkipPhases: []string{"preflight"},
		Patches:    bootstrapv1.Patches{Directory: "/etc/patches"},
		Timeouts: bootstrapv1.Timeouts{
			ControlPlaneComponentHealthCheckSeconds: ptr.To(int32(240)), KubeletHealthCheckSeconds: ptr.To(int32(30)),
			KubernetesAPICallSeconds: ptr.To(int32(60)), EtcdAPICallSeconds: ptr.To(int32(120)),
			TLSBootstrapSeconds: ptr.To(int32(300)), DiscoverySeconds: ptr.To(int32(90)),
		},
	}
}

// KB-07, KB-24
func TestMarshalJoin(t *testing.T) {
	cases := map[string]struct {
		reason  string
		in      bootstrapv1.JoinConfiguration
		version string
	}{
		"full-v1beta3":    {"arguments are a map, the discovery timeout sits in discovery, the rest is left out", fullJoin(), "v1.30.14"},
		"full-v1beta4":    {"arguments are a list with repetitions, timeouts have a section", fullJoin(), "v1.31.0"},
		"minimal-v1beta4": {"nothing is made up", bootstrapv1.JoinConfiguration{}, "v1.36.3"},
		"no-taints": {"an empty list is not null: kubeadm's default taints are not wanted", bootstrapv1.JoinConfiguration{
			NodeRegistration: bootstrapv1.NodeRegistrationOptions{Taints: &[]corev1.Taint{}},
		}, "1.36.3"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := MarshalJoin(tc.in, tc.version)
			if err != nil {
				t.Fatalf("%s: %v", tc.reason, err)
			}
			testkit.CompareGolden(t, filepath.Join("testdata", name+".yaml"), string(got))
		})
	}
}

// KB-07
func TestAPIVersionFor(t *testing.T) {
	cases := map[string]apiVersion{
		"v1.29.0": v1Beta3, "v1.30.99": v1Beta3, "1.30.1": v1Beta3,
		"v1.31.0-alpha.1": v1Beta4, "v1.31.0": v1Beta4, "v1.36.3+build": v1Beta4, "v2.0.0": v1Beta4,
	}
	for in, want := range cases {
		if got, err := apiVersionFor(in); got != want || err != nil {
			t.Errorf("APIVersionFor(%s) = %s, %v; want %s", in, got, err, want)
		}
	}
	for _, in := range []string{"", "latest", "v1", "v1.31"} {
		if _, err := apiVersionFor(in); fault.KindOf(err) != fault.Invalid {
			t.Errorf("APIVersionFor(%q) must be an Invalid fault, got %v", in, err)
		}
		if _, err := MarshalJoin(bootstrapv1.JoinConfiguration{}, in); fault.KindOf(err) != fault.Invalid {
			t.Errorf("MarshalJoin(%q) must be an Invalid fault, got %v", in, err)
		}
	}
}

// KB-07: whatever strings a user writes, the file says exactly these.
func FuzzMarshalJoin(f *testing.F) {
	for _, s := range []string{"", "0x10", "yes", "a: b", "- x", "{{ a }}", "multi\nline\n", "'\"\\", "1:30", "\u0085\u2028", " lead"} {
		f.Add(s, s)
	}
	f.Fuzz(func(t *testing.T, name, value string) {
		in := bootstrapv1.JoinConfiguration{NodeRegistration: bootstrapv1.NodeRegistrationOptions{
			Name: name, KubeletExtraArgs: []bootstrapv1.Arg{{Name: name, Value: &value}},
		}}
		out, err := MarshalJoin(in, "v1.36.3")
		if err != nil {
			t.Fatal(err)
		}
		var got struct {
			NodeRegistration struct {
				Name             string `json:"name"`
				KubeletExtraArgs []arg  `json:"kubeletExtraArgs"`
			} `json:"nodeRegistration"`
		}
		if err := yaml.Unmarshal(out, &got); err != nil {
			t.Fatalf("the file is not YAML: %v\n%s", err, out)
		}
		name, value = strings.ToValidUTF8(name, "\ufffd"), strings.ToValidUTF8(value, "\ufffd")
		if r := got.NodeRegistration; asJSON(r.Name) != asJSON(name) || asJSON(r.KubeletExtraArgs[0].Value) != asJSON(value) {
			t.Errorf("want name %q and value %q, got %q and %q", name, value, r.Name, r.KubeletExtraArgs[0].Value)
		}
	})
}

// asJSON evens out how many replacement characters stand for a broken byte sequence.
func asJSON(s string) string {
	for strings.Contains(s, "\ufffd\ufffd") {
		s = strings.ReplaceAll(s, "\ufffd\ufffd", "\ufffd")
	}
	return s
}
