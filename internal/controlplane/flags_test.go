package controlplane

import (
	"flag"
	"net/netip"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.etcd.io/etcd/server/v3/embed"
	cliflag "k8s.io/component-base/cli/flag"
	serverOptions "k8s.io/kubernetes/cmd/kube-apiserver/app/options"
	managerApp "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	managerOptions "k8s.io/kubernetes/cmd/kube-controller-manager/app/options"
	schedulerOptions "k8s.io/kubernetes/cmd/kube-scheduler/app/options"

	hostedv1 "github.com/slipwayhq/slipway/api/controlplane/v1alpha1"
	"github.com/slipwayhq/slipway/internal/controlplane/componentconfig"
	"github.com/slipwayhq/slipway/internal/controlplane/pki"
)

func TestNodeMask(t *testing.T) {
	tests := map[string]struct {
		reason string
		pods   string
		want   int
	}{
		"usual":             {"256 addresses for each of 128 nodes", "172.31.128.0/17", 24},
		"large":             {"256 addresses for each of 256 nodes", "10.0.0.0/16", 24},
		"huge":              {"the allocator takes at most 2^16 parts", "0.0.0.0/4", 20},
		"small":             {"at least 16 nodes", "172.31.128.0/22", 26},
		"a single address":  {"there is nothing to divide", "172.31.128.1/32", 32},
		"IPv6":              {"the customary 64 bits", "fd00::/56", 64},
		"IPv6 beyond 2^16":  {"the allocator takes at most 2^16 parts", "fd00::/40", 56},
		"small IPv6 range":  {"at least 16 nodes", "fd00::/108", 112},
		"smaller IPv4 net":  {"at least 16 nodes", "10.1.2.0/24", 28},
		"smallest sensible": {"at least 16 nodes, one address each", "10.1.2.0/28", 32},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := nodeMask(netip.MustParsePrefix(test.pods)); got != test.want {
				t.Errorf("%s is divided into /%d, want /%d: %s", test.pods, got, test.want, test.reason)
			}
		})
	}
}

func TestNodeMasksOfTwoFamilies(t *testing.T) {
	got := nodeMasks([]string{"10.0.0.0/16", "fd00::/56"})
	if diff := cmp.Diff([]string{"--node-cidr-mask-size-ipv4=24", "--node-cidr-mask-size-ipv6=64"}, got); diff != "" {
		t.Error(diff)
	}
}

func TestFlagsGivenTakeThePlaceOfOurs(t *testing.T) {
	own := []string{"--profiling=false", "--enable-admission-plugins=NodeRestriction", "--v=0"}
	tests := map[string]struct {
		reason string
		extra  []string
		want   []string
	}{
		"none":              {"ours as they are", nil, own},
		"another":           {"added", []string{"--event-ttl=3h"}, append(slices.Clone(own), "--event-ttl=3h")},
		"one of ours":       {"the user's value counts", []string{"--v=4"}, []string{own[0], own[1], "--v=4"}},
		"admission plugins": {"nodes stay restricted", []string{"--enable-admission-plugins=AlwaysPullImages"}, append(slices.Clone(own), "--enable-admission-plugins=AlwaysPullImages")},
		"repeated":          {"every value is kept", []string{"--v=1", "--v=2"}, []string{own[0], own[1], "--v=1", "--v=2"}},
	}
	for name, test := range tests {
		if diff := cmp.Diff(test.want, overrideFlags(own, test.extra)); diff != "" {
			t.Errorf("%s: %s: %s", name, test.reason, diff)
		}
	}
}

// Every flag that is given to a component exists, and no feature is left to static tokens or plain ports.
func TestFlagsSayWhatMatters(t *testing.T) {
	folder := pki.Folder{Path: "/pki"}
	c := config()
	strict := config()
	strict.Security = hostedv1.Security{Hardening: hostedv1.HardeningRestricted}.Effective()
	sets := map[string][]string{
		"management server":       managementFlags(folder, "unix:///s", "/auth", false),
		"management controllers":  managementControllerFlags(folder, "/kubeconfig"),
		"workload server":         workloadAPIServerFlags(c, folder, "unix:///s", []string{"--authentication-config=/auth"}),
		"workload server, strict": workloadAPIServerFlags(strict, folder, "unix:///s", nil),
		"workload controllers":    workloadControllerFlags(c, folder, "/kubeconfig"),
		"workload scheduler":      workloadSchedulerFlags(c, "/kubeconfig"),
	}
	want := map[string][]string{
		"management server":       {"--authorization-mode=RBAC", "--etcd-servers=unix:///s", "--authentication-config=/auth", "--profiling=false"},
		"management controllers":  {"--use-service-account-credentials=true"},
		"workload server":         {"--authorization-mode=Node,RBAC", "--enable-bootstrap-token-auth=true", "--enable-aggregator-routing=true", "--advertise-address=172.31.0.1", "--enable-admission-plugins=NodeRestriction,DenyServiceExternalIPs"},
		"workload server, strict": {"--kubelet-certificate-authority=/pki/ca.crt", "--authorization-mode=Node,RBAC", "--tls-min-version=VersionTLS13", "--enable-admission-plugins=NodeRestriction,DenyServiceExternalIPs,EventRateLimit"},
		"workload controllers":    {"--kube-api-qps=100", "--kube-api-burst=200", "--allocate-node-cidrs=true", "--cluster-cidr=172.31.128.0/17", "--node-cidr-mask-size=24"},
		"workload scheduler":      {"--kubeconfig=/kubeconfig"},
	}
	for name, flags := range sets {
		for _, f := range want[name] {
			if !slices.Contains(flags, f) {
				t.Errorf("%s: %s is missing", name, f)
			}
		}
		for _, f := range flags {
			if strings.HasPrefix(f, "--token-auth-file") || strings.HasPrefix(f, "--insecure") {
				t.Errorf("%s: %s", name, f)
			}
			if strings.HasPrefix(f, "--kubelet-certificate-authority") && name != "workload server, strict" {
				t.Errorf("%s: %s: kubelets that sign their own certificates are not reached", name, f)
			}
		}
	}
	// Quotas would watch kinds of this group, and say without end that they are not there.
	served := slices.Contains(servedGroups[:], "resource.k8s.io/v1")
	gates := slices.ContainsFunc(sets["management server"], func(f string) bool {
		return strings.HasPrefix(f, "--feature-gates=") && strings.Contains(f, "DRAExtendedResource=false")
	})
	if served == gates {
		t.Errorf("the management cluster serves resource.k8s.io: %t, and does not watch it: %t", served, gates)
	}
	signed := config()
	signed.Security.KubeletServingCertificates = hostedv1.KubeletServingSigned
	if diff := cmp.Diff(sets["workload server"], workloadAPIServerFlags(signed, folder, "unix:///s", []string{"--authentication-config=/auth"})); diff != "" {
		t.Errorf("nodes from before are reached as long as certificates are not required: %s", diff)
	}
}

func TestAllowedFlagsExist(t *testing.T) {
	manager, err := managerOptions.NewKubeControllerManagerOptions()
	if err != nil {
		t.Fatal(err)
	}
	db := flag.NewFlagSet("etcd", flag.ContinueOnError)
	embed.NewConfig().AddFlags(db)
	inSets := func(sets cliflag.NamedFlagSets) func(string) bool {
		return func(name string) bool {
			for _, set := range sets.FlagSets {
				if set.Lookup(name) != nil {
					return true
				}
			}
			return false
		}
	}
	for component, exists := range map[componentconfig.Component]func(string) bool{
		componentconfig.APIServer: inSets(serverOptions.NewServerRunOptions().Flags()),
		componentconfig.ControllerManager: inSets(manager.Flags(
			managerApp.KnownControllers(), managerApp.ControllersDisabledByDefault(), managerApp.ControllerAliases())),
		componentconfig.Scheduler: inSets(*schedulerOptions.NewOptions().Flags),
		componentconfig.Etcd:      func(name string) bool { return db.Lookup(name) != nil },
	} {
		for _, name := range documentedFlags(t, component) {
			if !exists(name) {
				t.Errorf("%s has no flag --%s", component, name)
			}
		}
	}
}

// documentedFlags returns the flags of a component in docs/hosted-control-plane.md, which are those that can be set.
func documentedFlags(t *testing.T, component componentconfig.Component) []string {
	t.Helper()
	text, err := os.ReadFile("../../docs/hosted-control-plane.md")
	if err != nil {
		t.Fatal(err)
	}
	_, row, found := strings.Cut(string(text), "| "+string(component)+" | `")
	if !found {
		t.Fatalf("docs/hosted-control-plane.md does not list the flags of %s", component)
	}
	names, _, _ := strings.Cut(row, "` |")
	return strings.Split(names, "`, `")
}
