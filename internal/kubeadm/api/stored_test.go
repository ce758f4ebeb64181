package api

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta2"

	"github.com/slipwayhq/slipway/internal/fault"
)

// storedV4 is what kubeadm v1.35 stores.
const storedV4 = `apiServer: {}
apiVersion: kubeadm.k8s.io/v1beta4
caCertificateValidityPeriod: 87600h0m0s
certificateValidityPeriod: 8760h0m0s
certificatesDir: /etc/kubernetes/pki
clusterName: c
controlPlaneEndpoint: 10.0.0.1:6443
controllerManager: {}
dns: {}
encryptionAlgorithm: RSA-2048
etcd:
  local:
    dataDir: /var/lib/etcd
imageRepository: example.org/k8s
kind: ClusterConfiguration
kubernetesVersion: v1.35.4
networking:
  dnsDomain: cluster.local
  podSubnet: 10.244.0.0/16
  serviceSubnet: 10.96.0.0/12
proxy: {}
scheduler: {}
unknown:
  a: [1, b]
`

// storedV3 is what kubeadm v1.30 stores.
const storedV3 = `apiServer:
  extraArgs:
    v: "4"
    audit-log-path: /var/log/a
  timeoutForControlPlane: 4m0s
apiVersion: kubeadm.k8s.io/v1beta3
certificatesDir: /etc/kubernetes/pki
clusterName: c
controllerManager: {}
dns: {}
etcd:
  local:
    dataDir: /data
    extraArgs:
      quota-backend-bytes: "1"
imageRepository: example.org/k8s
kind: ClusterConfiguration
kubernetesVersion: v1.30.1
networking: {}
scheduler: {}
`

func TestStored(t *testing.T) { // KC-21
	external := bootstrapv1.ExternalEtcd{Endpoints: []string{"https://e:2379"}, CAFile: "ca", CertFile: "c", KeyFile: "k"}
	storedExternal := strings.Replace(storedV4, "  local:\n    dataDir: /var/lib/etcd\n", "  external:\n    endpoints: [https://old:2379]\n    caFile: ca\n    certFile: c\n    keyFile: k\n", 1)
	for name, tc := range map[string]struct {
		reason, stored, version string
		config                  bootstrapv1.ClusterConfiguration
		changed                 []string
		has, not                []string
	}{
		"the same": {"what kubeadm stored as defaults is no difference", storedV4, "v1.35.4", bootstrapv1.ClusterConfiguration{}, nil, nil, nil},
		"version": {"everything else stays, known or not", storedV4, "v1.36.3", bootstrapv1.ClusterConfiguration{}, []string{"kubernetesVersion"},
			[]string{"kubernetesVersion: v1.36.3", "podSubnet: \"10.244.0.0/16\"", "dataDir: /var/lib/etcd", "unknown:", "imageRepository: example.org/k8s", "controlPlaneEndpoint: \"10.0.0.1:6443\""}, nil},
		"components": {"components are those of the control plane", storedV4, "v1.35.4", bootstrapv1.ClusterConfiguration{
			ImageRepository: "other.example.org/x", FeatureGates: map[string]bool{"RootlessControlPlane": true},
			APIServer: bootstrapv1.APIServer{CertSANs: []string{"a.b"}, ExtraArgs: []bootstrapv1.Arg{{Name: "v", Value: new("4")}}},
			Scheduler: bootstrapv1.Scheduler{ExtraArgs: []bootstrapv1.Arg{{Name: "v", Value: new("2")}}},
			Etcd:      bootstrapv1.Etcd{Local: bootstrapv1.LocalEtcd{ImageTag: "3.6.1"}}, CertificateValidityPeriodDays: 30,
			EncryptionAlgorithm: bootstrapv1.EncryptionAlgorithmECDSAP256,
		}, []string{"apiServer", "certificateValidityPeriod", "encryptionAlgorithm", "etcd", "featureGates", "imageRepository", "scheduler"},
			[]string{"certSANs:\n    - a.b", "name: v\n      value: \"4\"", "certificateValidityPeriod: \"720h0m0s\"", "encryptionAlgorithm: ECDSA-P256", "imageTag: \"3.6.1\"", "dataDir: /var/lib/etcd", "RootlessControlPlane: true"}, nil},
		"external etcd": {"endpoints follow", storedExternal, "v1.35.4", bootstrapv1.ClusterConfiguration{Etcd: bootstrapv1.Etcd{External: external}}, []string{"etcd"},
			[]string{"https://e:2379"}, []string{"https://old:2379", "local:"}},
		"external etcd, not said": {"it is never made a local one", storedExternal, "v1.35.4", bootstrapv1.ClusterConfiguration{}, nil, nil, nil},
		"raised": {"the next API version has lists of arguments and no timeout", storedV3, "v1.31.0", bootstrapv1.ClusterConfiguration{
			APIServer: bootstrapv1.APIServer{ExtraArgs: []bootstrapv1.Arg{{Name: "audit-log-path", Value: new("/var/log/a")}, {Name: "v", Value: new("4")}}},
			Etcd:      bootstrapv1.Etcd{Local: bootstrapv1.LocalEtcd{ExtraArgs: []bootstrapv1.Arg{{Name: "quota-backend-bytes", Value: new("1")}}}},
		}, []string{"apiServer", "apiVersion", "etcd", "featureGates", "kubernetesVersion"},
			[]string{"apiVersion: kubeadm.k8s.io/v1beta4", "name: audit-log-path", "dataDir: /data", "name: quota-backend-bytes"}, []string{"timeoutForControlPlane"}},
		"v1beta3": {"its timeout is no part of a KubeadmControlPlane's", storedV3, "v1.30.2", bootstrapv1.ClusterConfiguration{
			APIServer: bootstrapv1.APIServer{ExtraArgs: []bootstrapv1.Arg{{Name: "audit-log-path", Value: new("/var/log/a")}, {Name: "v", Value: new("4")}}},
			Etcd:      bootstrapv1.Etcd{Local: bootstrapv1.LocalEtcd{ExtraArgs: []bootstrapv1.Arg{{Name: "quota-backend-bytes", Value: new("1")}}}},
		}, []string{"kubernetesVersion"}, []string{"timeoutForControlPlane: \"4m0s\""}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			s, err := ParseStored(tc.stored)
			if err == nil {
				err = s.ForVersion(tc.version)
			}
			if err == nil {
				err = s.ApplyConfiguration(tc.config)
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.changed, s.Changed()); diff != "" {
				t.Errorf("%s: changed (-want +got):\n%s", tc.reason, diff)
			}
			text, err := s.Text()
			if err != nil {
				t.Fatal(err)
			}
			for _, want := range tc.has {
				if !strings.Contains(text, want) {
					t.Errorf("%s: no %q in\n%s", tc.reason, want, text)
				}
			}
			for _, not := range tc.not {
				if strings.Contains(text, not) {
					t.Errorf("%s: %q in\n%s", tc.reason, not, text)
				}
			}
			again, err := ParseStored(text)
			if err != nil || again.ForVersion(tc.version) != nil || again.ApplyConfiguration(tc.config) != nil || len(again.Changed()) > 0 {
				t.Errorf("%s: it does not settle: %v, %v", tc.reason, again.Changed(), err)
			}
		})
	}
}

// A configuration without components is raised with the arguments that it has.
func TestStoredRaised(t *testing.T) { // KC-21
	s, err := ParseStored(storedV3)
	if err != nil || s.ForVersion("v1.31.0") != nil {
		t.Fatal(err)
	}
	text, err := s.Text()
	if err != nil || !strings.Contains(text, "extraArgs:\n    - name: audit-log-path\n      value: /var/log/a\n    - name: v\n") || strings.Contains(text, "timeoutForControlPlane") {
		t.Errorf("%v\n%s", err, text)
	}
	if err := s.ForVersion("v1.30.0"); err != nil || s.api() != v1Beta4 {
		t.Errorf("the API version is lowered: %v", err)
	}
}

func TestStoredDNS(t *testing.T) { // KC-23
	s, err := ParseStored(storedV4)
	if err != nil {
		t.Fatal(err)
	}
	s.FollowDNS(bootstrapv1.DNS{ImageTag: "v1.13.1", ImageRepository: "r"})
	if text, err := s.Text(); err != nil || !strings.Contains(text, "dns:\n  imageRepository: r\n  imageTag: v1.13.1\n") || !cmp.Equal(s.Changed(), []string{"dns"}) {
		t.Errorf("%v %v\n%s", s.Changed(), err, text)
	}
	if s.FollowDNS(bootstrapv1.DNS{}); len(s.Changed()) > 0 {
		t.Errorf("taken back: %v", s.Changed())
	}
}

func TestStoredInvalid(t *testing.T) { // KC-21
	for name, text := range map[string]string{
		"nothing": "", "null": "null", "no map": "[a]", "no YAML": "a: [", "no version": "kind: ClusterConfiguration",
		"old": "apiVersion: kubeadm.k8s.io/v1beta2", "number": "apiVersion: 4", "newer": "apiVersion: kubeadm.k8s.io/v1beta9",
		"large": "apiVersion: kubeadm.k8s.io/v1beta4\n#" + strings.Repeat("x", maxStored), "aliases": "a: &a [x,x,x,x,x,x,x,x,x]\n" + bomb(),
	} {
		if _, err := ParseStored(text); fault.KindOf(err) != fault.Invalid {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, text := range map[string]string{"wrong types": "apiVersion: kubeadm.k8s.io/v1beta3\napiServer: 3\netcd: [a]\nscheduler: {extraArgs: 7}\ndns: x\nnetworking: null"} {
		s, err := ParseStored(text)
		if err != nil || s.ForVersion("v1.36.3") != nil || s.ApplyConfiguration(bootstrapv1.ClusterConfiguration{}) != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		s.FollowDNS(bootstrapv1.DNS{ImageTag: "v1.13.1"})
		if _, err := s.Text(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	s, _ := ParseStored(storedV4)
	if err := s.ForVersion("x"); fault.KindOf(err) != fault.Invalid {
		t.Errorf("no version: %v", err)
	}
}

// bomb is YAML whose aliases stand for much more than its text.
func bomb() string {
	var b strings.Builder
	for c := 'b'; c < 'i'; c++ {
		b.WriteString(string(c) + ": &" + string(c) + " [" + strings.TrimSuffix(strings.Repeat("*"+string(c-1)+",", 9), ",") + "]\n")
	}
	return b.String()
}
