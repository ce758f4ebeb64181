package policy_test

import (
	"net/netip"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/policy"
	"github.com/slipwayhq/slipway/internal/providerset"
)

const head = "apiVersion: config.slipway.dev/v1alpha1\nkind: Configuration\n"

var comparePrefixes = cmp.Comparer(func(a, b netip.Prefix) bool { return a == b })

func TestDefaultsAreWhatIsPrinted(t *testing.T) {
	text, err := policy.Default().Print()
	if err != nil {
		t.Fatal(err)
	}
	got, err := policy.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(policy.Default(), got, comparePrefixes, cmpopts.EquateEmpty()); diff != "" {
		t.Error(diff)
	}
	if got, err = policy.Parse([]byte(head)); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(policy.Default(), got, comparePrefixes); diff != "" {
		t.Errorf("a file that says nothing changes defaults: %s", diff)
	}
}

func TestParse(t *testing.T) {
	for name, test := range map[string]struct{ text, want, reason string }{
		"unknown field":    {head + "nodez: {}\n", "nodez", "a misspelt limit would not hold"},
		"where it is":      {head + "management: {audit: {policy: {kind: Policy, rules: [{level: None}]}}}\n", `unknown field "management.audit.policy.kind"`, "a policy is often pasted"},
		"another case":     {head + "Nodes: {}\n", `unknown field "Nodes"`, "settings are written as the pages write them"},
		"several unknown":  {head + "nodez: {}\nnodes: {cpuz: 1}\n", `unknown field "nodes.cpuz"`, "all of them are named"},
		"unknown version":  {"apiVersion: config.slipway.dev/v1\nkind: Configuration\n", "set apiVersion", "it may mean something else"},
		"no version":       {"nodes: {}\n", "set apiVersion", ""},
		"twice":            {head + "nodes: {cpus: 1}\nnodes: {cpus: 2}\n", "nodes", "one of them would be lost"},
		"unknown provider": {head + "providers: {disabled: [local]}\n", "bootstrap-kubeadm, cluster-api, control-plane-hosted, control-plane-kubeadm, infrastructure-local, infrastructure-ssh, simulated", "it would go on running"},
		"root":             {head + "nodes: {mounts: [{path: /}]}\n", "other than /", "that is all of the host"},
		"relative":         {head + "nodes: {mounts: [{path: srv}]}\n", "absolute", ""},
		"dots":             {head + "nodes: {mounts: [{path: /srv/../etc}]}\n", "without ..", ""},
		"any image":        {head + "nodes: {images: ['*']}\n", "nodes.images", ""},
		"host bits":        {head + "networks: {ranges: [10.1.0.0/8]}\n", "use 10.0.0.0/8", ""},
		"no range":         {head + "networks: {ranges: [banana]}\n", "banana", ""},
		"negative":         {head + "maxima: {nodes: {total: -1}}\n", "maxima.nodes.total is -1", ""},
		"issuer":           {head + "controlPlanes: {issuers: ['http://issuer.example']}\n", "the https URL", "its keys could be replaced"},
		"issuer of a file": {head + "controlPlanes: {issuers: ['file:///x']}\n", "controlPlanes.issuers", ""},
		"any issuer":       {head + "controlPlanes: {issuers: ['*']}\n", "controlPlanes.issuers", "the API servers would connect anywhere"},
		"loopback server":  {head + "networks: {internet: {nameServers: [127.0.0.53]}}\n", "networks.internet.nameServers: 127.0.0.53", "Pods do not reach it"},
		"IPv6 server":      {head + "networks: {internet: {nameServers: ['2001:db8::53']}}\n", "networks.internet.nameServers: 2001:db8::53", "networks are IPv4"},
		"every address":    {head + "management: {addresses: [0.0.0.0]}\n", "management.addresses: \"0.0.0.0\"", "a certificate cannot name it"},
		"name as address":  {head + "management: {addresses: [clusters.example.com]}\n", "set an IP address of this host", ""},
		"no name":          {head + "management: {names: ['https://clusters.example.com']}\n", "management.names", "a name and no URL"},
		"two at once":      {head + "networks: {widestPrefix: 2}\nmaxima: {replicas: -1}\n", "maxima.replicas is -1", "all of them are named"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := policy.Parse([]byte(test.text))
			if fault.KindOf(err) != fault.Invalid || !strings.Contains(err.Error(), test.want) {
				t.Errorf("error %v, want one with %q: %s", err, test.want, test.reason)
			}
		})
	}
}

// The file that docs/local.md shows is one that is read, and says what the text around it says.
func TestDocumentedFile(t *testing.T) {
	page, err := os.ReadFile("../../docs/local.md")
	if err != nil {
		t.Fatal(err)
	}
	_, text, ok := strings.Cut(string(page), "```yaml\napiVersion: "+policy.APIVersion+"\n")
	text, _, closed := strings.Cut(text, "```")
	if !ok || !closed {
		t.Fatal("the page shows no configuration file")
	}
	c, err := policy.Parse([]byte("apiVersion: " + policy.APIVersion + "\n" + text))
	if err != nil {
		t.Fatal(err)
	}
	if c.Nodes.CPUs != 4 || len(c.Nodes.Mounts) != 2 || c.Maxima.Nodes.Total != 100 || c.Maxima.SimulatedNodes.Total != 5000 {
		t.Errorf("got %+v", c)
	}
}

func configuration(t *testing.T, text string) policy.Configuration {
	t.Helper()
	c, err := policy.Parse([]byte(head + text))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestMounts(t *testing.T) {
	c := configuration(t, "nodes: {mounts: [{path: /srv/shared}, {path: /data, writable: true, namespaces: [team-a]}]}")
	for name, test := range map[string]struct {
		c             policy.Configuration
		namespace, at string
		readOnly      bool
		denied        string
	}{
		"by default none":      {c: policy.Default(), at: "/srv/shared", readOnly: true, denied: "nodes.mounts"},
		"allowed":              {c: c, at: "/srv/shared", readOnly: true},
		"in it":                {c: c, at: "/srv/shared/a/b", readOnly: true},
		"beside it":            {c: c, at: "/srv/shared-too", readOnly: true, denied: "nodes.mounts"},
		"above it":             {c: c, at: "/srv", readOnly: true, denied: "nodes.mounts"},
		"out of it again":      {c: c, at: "/srv/shared/../../etc", readOnly: true, denied: "/etc"},
		"for writing":          {c: c, at: "/srv/shared", denied: "readOnly"},
		"writable":             {c: c, namespace: "team-a", at: "/data/x"},
		"of another namespace": {c: c, namespace: "team-b", at: "/data/x", denied: "team-b"},
	} {
		t.Run(name, func(t *testing.T) { check(t, test.c.DeniedMount(test.namespace, test.at, test.readOnly), test.denied) })
	}
}

func TestImages(t *testing.T) {
	for _, image := range []string{"slipway.dev/node:v1.36.3", "slipway.dev/node-control-plane:v1.36.3"} {
		check(t, policy.Default().DeniedImage(image), "") // what slipway image build makes
	}
	c := configuration(t, "nodes: {images: [slipway.dev/node, 'registry.example.org:5000/team/*', 'kindest/node:v1.36.3']}")
	for name, test := range map[string]struct{ image, denied string }{
		"any tag":             {"slipway.dev/node:v1.36.3", ""},
		"a digest":            {"slipway.dev/node@sha256:abc", ""},
		"a longer repository": {"slipway.dev/node-too:v1", "nodes.images"},
		"in the prefix":       {"registry.example.org:5000/team/node:v1", ""},
		"out of the prefix":   {"registry.example.org:5000/team/../other/node:v1", "nodes.images"},
		"out by a tag":        {"slipway.dev/node:../../containers/x", "nodes.images"},
		"an ID":               {"sha256:0a1b2c", "nodes.images"},
		"beside the prefix":   {"registry.example.org:5000/teams/node:v1", "nodes.images"},
		"the tag":             {"kindest/node:v1.36.3", ""},
		"another tag":         {"kindest/node:v1.36.4", "nodes.images"},
	} {
		t.Run(name, func(t *testing.T) { check(t, c.DeniedImage(test.image), test.denied) })
	}
}

func TestResources(t *testing.T) {
	c := configuration(t, "nodes: {cpus: 2, memoryMiB: 4096, processes: 1000}")
	check(t, c.DeniedResources(2, 4096, 1000), "")
	check(t, c.DeniedResources(0, 0, 0), "")
	check(t, c.DeniedResources(3, 0, 0), "nodes.cpus")
	check(t, c.DeniedResources(0, 4097, 0), "nodes.memoryMiB")
	check(t, c.DeniedResources(0, 0, 1001), "nodes.processes")
	check(t, policy.Default().DeniedResources(1000, 1<<40, 32768), "")
}

func TestReplicas(t *testing.T) {
	check(t, policy.Default().DeniedReplicas(1000), "")
	check(t, policy.Default().DeniedReplicas(1001), "maxima.replicas")
	check(t, configuration(t, "maxima: {replicas: 0}").DeniedReplicas(2000000000), "")
}

func TestRanges(t *testing.T) {
	for name, test := range map[string]struct{ p, denied string }{
		"private":          {"172.31.0.0/16", ""},
		"company":          {"10.40.0.0/16", "networks.ranges"},
		"home":             {"192.168.0.0/20", "networks.ranges"},
		"all of it":        {"172.16.0.0/12", "networks.widestPrefix"},
		"public":           {"8.8.0.0/16", "networks.ranges"},
		"link-local":       {"169.254.0.0/16", "networks.ranges"},
		"everything":       {"10.0.0.0/8", "networks.widestPrefix"},
		"beside the range": {"172.32.0.0/15", "networks.ranges"},
	} {
		t.Run(name, func(t *testing.T) { check(t, policy.Default().DeniedRange(netip.MustParsePrefix(test.p)), test.denied) })
	}
}

// The operator opens ranges that this host does not need.
func TestRangesOfTheOperator(t *testing.T) {
	c := configuration(t, "networks: {ranges: [172.16.0.0/12, 10.0.0.0/8], widestPrefix: 12}")
	check(t, c.DeniedRange(netip.MustParsePrefix("10.16.0.0/12")), "")
	check(t, c.DeniedRange(netip.MustParsePrefix("192.168.0.0/16")), "networks.ranges")
}

// The operator opens ranges of virtual IP addresses for all namespaces or for some.
func TestVirtualIPs(t *testing.T) {
	c := configuration(t, "hosts: {virtualIPs: [192.0.2.0/28, {range: 198.51.100.0/24, namespaces: [team-a]}]}")
	for name, tc := range map[string]struct{ namespace, address, denied string }{
		"for all":       {"team-b", "192.0.2.9", ""},
		"for one":       {"team-a", "198.51.100.9", ""},
		"of another":    {"team-b", "198.51.100.9", "is not the address of a host in 192.0.2.0/28: use another one"},
		"in a template": {"", "198.51.100.9", ""},
		"outside":       {"team-a", "203.0.113.9", "192.0.2.0/28, 198.51.100.0/24"},
	} {
		t.Run(name, func(t *testing.T) {
			check(t, c.DeniedVirtualIP(tc.namespace, netip.MustParseAddr(tc.address)), tc.denied)
		})
	}
	check(t, policy.Default().DeniedVirtualIP("team-a", netip.MustParseAddr("192.0.2.9")), "hosts.virtualIPs")
	check(t, configuration(t, "hosts: {virtualIPs: [{range: 198.51.100.0/24, namespaces: [team-a]}]}").DeniedVirtualIP("team-b", netip.MustParseAddr("198.51.100.9")), "may not be used")
	text, err := c.Print()
	if err != nil {
		t.Fatal(err)
	}
	again, err := policy.Parse(text)
	if diff := cmp.Diff(c.Hosts.VirtualIPs, again.Hosts.VirtualIPs, cmp.Comparer(func(a, b netip.Prefix) bool { return a == b })); err != nil || diff != "" {
		t.Errorf("printed and parsed: %v (-want +got):\n%s", err, diff)
	}
	for text, want := range map[string]string{
		"[{range: 198.51.100.0/24, namespace: team-a}]": "namespace", "[198.51.100.9/24]": "hosts.virtualIPs: 198.51.100.9/24 has host bits set", "[{namespaces: [team-a]}]": "hosts.virtualIPs",
	} {
		if _, err := policy.Parse([]byte("apiVersion: config.slipway.dev/v1alpha1\nkind: Configuration\nhosts: {virtualIPs: " + text + "}\n")); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", text, err)
		}
	}
}

func TestExceededRange(t *testing.T) {
	m := policy.Maxima{NetworkAddresses: policy.Maximum{Namespace: 1 << 17, Total: 1 << 18}}
	p := netip.MustParsePrefix("172.16.0.0/16")
	check(t, m.ExceededRange("a", p, 1<<16, 1<<17), "")
	check(t, m.ExceededRange("a", p, 1<<16+1, 1<<17), "maxima.networkAddresses.namespace")
	check(t, m.ExceededRange("a", p, 0, 1<<18), "maxima.networkAddresses.total")
	check(t, policy.Maxima{}.ExceededRange("a", p, 1<<40, 1<<40), "")
}

// Everything that the file names as an address of somebody else is known, so that no cluster takes it.
func TestNamed(t *testing.T) {
	c := configuration(t, `snapshots: {endpoints: ["172.20.0.9:9000", store.example.com]}
controlPlanes: {issuers: ["https://172.21.0.9:8443/realm"], addresses: [172.22.0.9/32]}
workloads: {proxies: ["http://172.23.0.9:3128"], ranges: [172.16.0.0/12, 172.24.0.9/32]}
networks: {internet: {nameServers: [172.25.0.9]}}
management: {addresses: [172.26.0.9], authentication: {jwt: [{issuer: {url: "https://login.example.com", audiences: [a]}, claimMappings: {username: {claim: sub, prefix: "x:"}}}]}}`)
	var got []string
	for _, n := range c.ReachableHosts() {
		got = append(got, n.Host)
	}
	want := []string{"172.20.0.9", "store.example.com", "172.21.0.9", "172.22.0.9/32", "172.23.0.9", "172.24.0.9/32", "172.25.0.9", "172.26.0.9", "login.example.com"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for text, want := range map[string]string{"http://proxy.example.com:3128": "proxy.example.com", "proxy.example.com:3128": "proxy.example.com",
		"https://[2001:db8::1]:6443": "2001:db8::1", "unix:///var/run/docker.sock": "", "": ""} {
		if got := policy.ReachableURL(text, "x").Host; got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}

func TestInternet(t *testing.T) {
	check(t, policy.Default().DeniedInternet("team-a"), "networks.internet")
	check(t, configuration(t, "networks: {internet: {allowed: true}}").DeniedInternet("team-a"), "")
	some := configuration(t, "networks: {internet: {allowed: true, namespaces: [team-a], nameServers: [192.0.2.53]}}")
	check(t, some.DeniedInternet("team-a"), "")
	check(t, some.DeniedInternet("team-b"), "namespace team-b")
	check(t, configuration(t, "networks: {internet: {namespaces: [team-a]}}").DeniedInternet("team-a"), "networks.internet")
}

func TestAddresses(t *testing.T) {
	c := configuration(t, "controlPlanes: {addresses: [192.0.2.7/32], reservedPorts: [6440]}\nworkloads: {ranges: [10.0.0.0/8]}")
	if at := netip.MustParseAddrPort("192.0.2.7:6443"); !c.AllowsListening(at) || policy.Default().AllowsListening(at) {
		t.Error("listening is allowed where the operator says so, and nowhere by default")
	}
	if c.AllowsListening(netip.MustParseAddrPort("192.0.2.7:6440")) || c.AllowsListening(netip.MustParseAddrPort("192.0.2.8:6443")) {
		t.Error("listening is allowed at a reserved port or another address")
	}
	check(t, c.DeniedWorkload(netip.MustParseAddr("::ffff:10.1.2.3")), "")
	check(t, c.DeniedWorkload(netip.MustParseAddr("169.254.169.254")), "workloads.ranges")
	check(t, policy.Default().DeniedWorkload(netip.MustParseAddr("192.0.2.1")), "")
}

func TestMaxima(t *testing.T) {
	m := policy.Maximum{Namespace: 2, Total: 3}
	check(t, m.Exceeded("maxima.nodes", "a", 1, 2), "")
	check(t, m.Exceeded("maxima.nodes", "a", 2, 2), "maxima.nodes.namespace")
	check(t, m.Exceeded("maxima.nodes", "a", 1, 3), "maxima.nodes.total")
	check(t, policy.Maximum{}.Exceeded("maxima.nodes", "a", 1000, 1000), "")
}

func TestProviders(t *testing.T) {
	c := configuration(t, "providers: {disabled: [simulated]}")
	if c.Runs(policy.Simulated) || !c.Runs(providerset.InfrastructureLocal) || !policy.Default().Runs(policy.Simulated) {
		t.Error("providers run unless they are disabled")
	}
	check(t, c.DeniedSimulated(), "providers.disabled")
	check(t, policy.Default().DeniedSimulated(), "")
}

func check(t *testing.T, got, want string) {
	t.Helper()
	if (got == "") != (want == "") || !strings.Contains(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}
