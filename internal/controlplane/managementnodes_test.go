package controlplane

import (
	"net/netip"
	"os"
	"slices"
	"strings"
	"testing"

	"k8s.io/client-go/tools/clientcmd"

	"github.com/slipwayhq/slipway/internal/controlplane/componentconfig"
	"github.com/slipwayhq/slipway/internal/controlplane/datadir"
	"github.com/slipwayhq/slipway/internal/controlplane/pki"
)

func nodes() *Nodes {
	return &Nodes{Endpoint: netip.MustParseAddrPort("172.16.64.1:6443"), PodCIDR: netip.MustParsePrefix("172.16.65.0/24")}
}

// With nodes the API server has every API and authorizes kubelets; without, what it had.
func TestFlagsWithNodes(t *testing.T) {
	folder := pki.Folder{Path: t.TempDir()}
	without := managementFlags(folder, "unix:///s", "/auth", false)
	if same := (*Nodes)(nil).server(without, folder); !slices.Equal(same, without) {
		t.Errorf("without nodes: %v", same)
	}
	with := nodes().server(without, folder)
	for _, want := range []string{
		"--authorization-mode=Node,RBAC", "--enable-admission-plugins=NodeRestriction,DenyServiceExternalIPs", "--enable-aggregator-routing=true",
		"--advertise-address=172.16.64.1", "--authentication-config=/auth", "--etcd-servers=unix:///s",
	} {
		if !slices.Contains(with, want) {
			t.Errorf("%s is missing: %v", want, with)
		}
	}
	for _, f := range with {
		if strings.HasPrefix(f, "--runtime-config") || strings.HasPrefix(f, "--disable-admission-plugins") || f == "--authorization-mode=RBAC" {
			t.Errorf("%s stays", f)
		}
	}
	loops := nodes().controllers(managementControllerFlags(folder, "/kubeconfig"))
	for _, want := range []string{"--cluster-cidr=172.16.65.0/24", "--node-cidr-mask-size=24", "--use-service-account-credentials=true"} {
		if !slices.Contains(loops, want) {
			t.Errorf("%s is missing: %v", want, loops)
		}
	}
}

// The API server shows its certificate to webhooks, and Pods are bounded where there are nodes.
func TestAdmissionFile(t *testing.T) {
	for name, n := range map[string]*Nodes{"with": nodes(), "without": nil} {
		m := managementPKI{dir: datadir.Dir(t.TempDir()), nodes: n}
		m.folder = pki.Folder{Path: m.dir.Path("pki")}
		if err := os.Mkdir(m.folder.Path, 0o700); err != nil {
			t.Fatal(err)
		}
		flag, err := m.writeAdmission()
		if err != nil {
			t.Fatal(err)
		}
		_, path := componentconfig.SplitFlag(flag)
		content, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		text := string(content)
		if got := strings.Contains(text, `"enforce":"baseline"`) && strings.Contains(text, "kube-system"); got != (n != nil) {
			t.Errorf("%s nodes: %s", name, text)
		}
		if strings.Count(text, m.webhookKubeconfig()) != 2 {
			t.Errorf("%s nodes, credentials for webhooks: %s", name, text)
		}
	}
}

// The API server is known by the addresses that nodes and Pods use, and only then.
func TestCertificatesWithNodes(t *testing.T) {
	for name, n := range map[string]*Nodes{"with": nodes(), "without": nil} {
		now := start
		m := managementCerts(t, &now)
		m.hosts, m.nodes = append(m.hosts, n.hosts()...), n
		if err := m.ensure(); err != nil {
			t.Fatal(err)
		}
		pair, _, err := m.folder.Leaf("apiserver", mustAuthority(t, m), pki.Leaf{User: "kube-apiserver", IPs: m.hosts, Names: []string{
			"localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc.cluster.local",
		}})
		if err != nil {
			t.Fatal(err)
		}
		for _, ip := range []string{"172.16.64.1", "192.0.2.1"} {
			if err := pair.Cert.VerifyHostname(ip); (err == nil) != (n != nil) {
				t.Errorf("%s nodes, %s: %v", name, ip, err)
			}
		}
		_, err = clientcmd.LoadFromFile(m.schedulerKubeconfig())
		if (err == nil) != (n != nil) {
			t.Errorf("%s nodes: kubeconfig of the scheduler: %v", name, err)
		}
	}
	if managementServiceIP().String() != "192.0.2.1" {
		t.Error(managementServiceIP())
	}
}

func mustAuthority(t *testing.T, m managementPKI) pki.Pair {
	t.Helper()
	ca, err := m.folder.Authority("ca", pki.Authority{})
	if err != nil {
		t.Fatal(err)
	}
	return ca
}
