package render_test

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"k8s.io/utils/ptr"

	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/kubeadm/bootstrap/render"
	"github.com/slipwayhq/slipway/internal/kubeadm/secrets"
	"github.com/slipwayhq/slipway/test/testkit"
)

// spec is one that serves all roles, as a control plane object makes it.
func spec() bootstrapv1.KubeadmConfigSpec {
	registration := bootstrapv1.NodeRegistrationOptions{
		Name: "{{ ds.meta_data.local_hostname }}", KubeletExtraArgs: []bootstrapv1.Arg{{Name: "node-labels", Value: ptr.To("a=b")}},
	}
	patches := bootstrapv1.Patches{Directory: "/etc/kubernetes/patches"}
	timeouts := bootstrapv1.Timeouts{ControlPlaneComponentHealthCheckSeconds: ptr.To(int32(240)), TLSBootstrapSeconds: ptr.To(int32(300)), DiscoverySeconds: ptr.To(int32(90))}
	return bootstrapv1.KubeadmConfigSpec{
		ClusterConfiguration: bootstrapv1.ClusterConfiguration{
			APIServer: bootstrapv1.APIServer{
				ExtraArgs: []bootstrapv1.Arg{{Name: "audit-log-path", Value: ptr.To("-")}}, CertSANs: []string{"api.example"},
				ExtraEnvs: &[]bootstrapv1.EnvVar{{EnvVar: corev1.EnvVar{Name: "GOGC", Value: "50"}}},
			},
		},
		InitConfiguration: bootstrapv1.InitConfiguration{NodeRegistration: registration, Patches: patches, Timeouts: timeouts, SkipPhases: []string{"addon/coredns"}},
		JoinConfiguration: bootstrapv1.JoinConfiguration{
			NodeRegistration: registration, Patches: patches, Timeouts: timeouts, SkipPhases: []string{"preflight"},
			Discovery: bootstrapv1.Discovery{BootstrapToken: bootstrapv1.BootstrapTokenDiscovery{
				Token: "abcdef.0123456789abcdef", APIServerEndpoint: "10.0.0.1:6443", CACertHashes: []string{"sha256:00"}}},
		},
		Files:              []bootstrapv1.File{{Path: "/etc/kubernetes/patches/kubeletconfiguration0+strategic.yaml", Content: "maxPods: 50\n"}},
		PreKubeadmCommands: []string{"hostnamectl"},
	}
}

func cluster() *clusterv1.Cluster {
	c := &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "c"}}
	c.Spec.ClusterNetwork = clusterv1.ClusterNetwork{
		Services:      clusterv1.NetworkRanges{CIDRBlocks: []string{"10.96.0.0/16", "fd00:1::/112"}},
		Pods:          clusterv1.NetworkRanges{CIDRBlocks: []string{"10.244.0.0/16", "fd00:2::/56"}},
		ServiceDomain: "cluster.example",
	}
	return c
}

// KB-06, KB-07, KB-08, KB-23, KB-24, KC-35, KC-37: the data of each role by version, as a machine gets it.
func TestRoles(t *testing.T) {
	certificates := []render.File{{Path: "/etc/kubernetes/pki/ca.crt", Owner: "root:root", Permissions: "0640", Content: []byte("CERTIFICATE\n")}}
	roles := map[string]func(render.Input) (render.Payload, error){
		"init":          func(in render.Input) (render.Payload, error) { return render.Init(in, cluster()) },
		"control-plane": render.JoinControlPlane,
		"worker":        func(in render.Input) (render.Payload, error) { in.Certificates = nil; return render.Join(in) },
	}
	for role, make := range roles {
		for _, version := range []string{"v1.30.14", "v1.32.0", "v1.36.3"} {
			p, err := make(render.Input{Spec: spec(), KubernetesVersion: version, Endpoint: "10.0.0.1:6443", Certificates: certificates})
			if err != nil {
				t.Fatal(err)
			}
			text, err := render.RenderCloudConfig(p)
			if err != nil {
				t.Fatal(err)
			}
			testkit.CompareGolden(t, filepath.Join("testdata", role+"-"+version+".yaml"), string(text))
		}
		if _, err := make(render.Input{KubernetesVersion: "latest"}); fault.KindOf(err) != fault.Invalid {
			t.Errorf("%s: %v", role, err)
		}
		missing := bootstrapv1.KubeadmConfigSpec{Files: []bootstrapv1.File{{Path: "/f", ContentFrom: bootstrapv1.FileSource{Secret: bootstrapv1.SecretFileSource{Name: "gone", Key: "k"}}}}}
		if _, err := make(render.Input{KubernetesVersion: "v1.36.3", Spec: missing}); err == nil || !strings.Contains(err.Error(), "Secret gone") {
			t.Errorf("%s: %v", role, err)
		}
	}
}

// KB-23, SE-02
func TestCertificateFiles(t *testing.T) {
	found := secrets.Secrets{}
	for _, p := range []secrets.Purpose{secrets.CA, secrets.Etcd, secrets.Proxy, secrets.SA, secrets.EtcdClient} {
		from := p
		if p == secrets.EtcdClient {
			from = secrets.CA // any pair
		}
		data, err := secrets.Generate(from, secrets.KeyOptions{}, time.Now())
		if err != nil {
			t.Fatal(err)
		}
		data["tls.crt"] = append([]byte("#cloud-config\n"), data["tls.crt"]...)
		found[p] = secrets.NewSecret(client.ObjectKeyFromObject(cluster()), p, secrets.Owner{}, data)
	}
	external := bootstrapv1.ClusterConfiguration{CertificatesDir: "/pki", Etcd: bootstrapv1.Etcd{External: bootstrapv1.ExternalEtcd{
		Endpoints: []string{"https://e:2379"}, CAFile: "/e/ca.crt", CertFile: "/e/client.crt", KeyFile: "/e/client.key"}}}
	for name, tc := range map[string]struct {
		config bootstrapv1.ClusterConfiguration
		want   []string
	}{
		"stacked": {bootstrapv1.ClusterConfiguration{}, []string{
			"/etc/kubernetes/pki/ca.crt 0640", "/etc/kubernetes/pki/ca.key 0600",
			"/etc/kubernetes/pki/etcd/ca.crt 0640", "/etc/kubernetes/pki/etcd/ca.key 0600",
			"/etc/kubernetes/pki/front-proxy-ca.crt 0640", "/etc/kubernetes/pki/front-proxy-ca.key 0600",
			"/etc/kubernetes/pki/sa.pub 0640", "/etc/kubernetes/pki/sa.key 0600"}},
		"external": {external, []string{
			"/pki/ca.crt 0640", "/pki/ca.key 0600", "/pki/front-proxy-ca.crt 0640", "/pki/front-proxy-ca.key 0600",
			"/pki/sa.pub 0640", "/pki/sa.key 0600", "/e/ca.crt 0640", "/e/client.crt 0640", "/e/client.key 0600"}},
	} {
		files, err := render.CertificateFiles(tc.config, found)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, f := range files {
			got = append(got, f.Path+" "+f.Permissions)
			if f.Owner != "root:root" || strings.Contains(string(f.Content), "cloud-config") || !strings.HasPrefix(string(f.Content), "-----BEGIN ") {
				t.Errorf("%s: owner %s, content %s", f.Path, f.Owner, f.Content)
			}
		}
		if diff := cmp.Diff(tc.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	delete(found[secrets.CA].Data, "tls.key")
	files, err := render.CertificateFiles(bootstrapv1.ClusterConfiguration{}, found)
	if err != nil || len(files) != 7 {
		t.Errorf("of a CA whose key is elsewhere there is no key: %d files, %v", len(files), err)
	}
	delete(found, secrets.SA)
	if _, err := render.CertificateFiles(bootstrapv1.ClusterConfiguration{}, found); fault.KindOf(err) != fault.Invalid {
		t.Errorf("a missing Secret: %v", err)
	}
}
