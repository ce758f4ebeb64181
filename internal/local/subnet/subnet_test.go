package subnet_test

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/slipwayhq/slipway/internal/local/subnet"
)

var byString = cmp.Options{
	cmp.Comparer(func(a, b netip.Prefix) bool { return a == b }),
	cmp.Comparer(func(a, b netip.Addr) bool { return a == b }),
}

func prefixes(s ...string) []netip.Prefix {
	var out []netip.Prefix
	for _, p := range s {
		out = append(out, netip.MustParsePrefix(p))
	}
	return out
}

func TestPlan(t *testing.T) {
	cases := map[string]struct {
		reason, subnet string
		want           subnet.Layout
		wantErr        string
	}{
		"16": {reason: "nodes take the low end", subnet: "172.31.0.0/16", want: subnet.Layout{
			Subnet: netip.MustParsePrefix("172.31.0.0/16"), Nodes: netip.MustParsePrefix("172.31.0.0/24"),
			Others: netip.MustParsePrefix("172.31.0.240/28"), Gateway: netip.MustParseAddr("172.31.0.1")}},
		"20": {reason: "the smallest", subnet: "172.16.16.0/20", want: subnet.Layout{
			Subnet: netip.MustParsePrefix("172.16.16.0/20"), Nodes: netip.MustParsePrefix("172.16.16.0/24"),
			Others: netip.MustParsePrefix("172.16.16.240/28"), Gateway: netip.MustParseAddr("172.16.16.1")}},
		"too small": {reason: "no room for Pods", subnet: "172.16.16.0/21", wantErr: "not between /8 and /20"},
		"host bits": {reason: "the message says what was meant", subnet: "172.16.16.1/20", wantErr: "use 172.16.16.0/20"},
		"IPv6":      {reason: "IPv4 only", subnet: "fd00::/20", wantErr: "not an IPv4 range"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := subnet.NewLayout(netip.MustParsePrefix(tc.subnet))
			if tc.wantErr != "" {
				if err == nil || !strings.Contains(err.Error(), tc.wantErr) {
					t.Fatalf("%s: got error %v, want %q", tc.reason, err, tc.wantErr)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got, byString); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

func TestChoose(t *testing.T) {
	cases := map[string]struct {
		reason        string
		taken, wanted []netip.Prefix
		want          string
	}{
		"nothing taken":     {"the lowest", nil, nil, "172.16.0.0/18"},
		"docker's own":      {"Docker's bridge takes 172.17.0.0/16", prefixes("172.17.0.0/16", "172.16.0.0/16"), nil, "172.18.0.0/18"},
		"a small route":     {"a route of one address is enough to stay away", prefixes("172.16.0.9/32"), nil, "172.16.64.0/18"},
		"a wide route":      {"a wider range than ours covers it", prefixes("172.16.0.0/13"), nil, "172.24.0.0/18"},
		"all taken":         {"nothing is left", prefixes("172.16.0.0/12"), nil, ""},
		"pods and services": {"the smallest range around both", nil, prefixes("172.31.128.0/17", "172.31.64.0/18"), "172.31.0.0/16"},
		"nodes collide": {"the first addresses are the nodes', so it grows until they are free", nil,
			prefixes("172.31.0.0/17", "172.31.128.0/18"), "172.30.0.0/15"},
		"common defaults": {"10.0.0.0/8 would be too much of the host's world", nil, prefixes("10.244.0.0/16", "10.96.0.0/12"), "172.16.0.0/18"},
		"public ranges":   {"192.168.0.0/16 cannot grow", nil, prefixes("192.168.0.0/16"), "172.16.0.0/18"},
		"wanted is taken": {"another cluster has it", prefixes("172.31.0.0/16"), prefixes("172.31.128.0/17"), "172.16.0.0/18"},
		"tiny":            {"never smaller than /20", nil, prefixes("172.20.8.0/24"), "172.20.0.0/20"},
		"dual stack":      {"IPv6 ranges are not looked at", nil, prefixes("fd00::/64"), "172.16.0.0/18"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, ok := subnet.Choose(subnet.RangeRequest{Taken: tc.taken, Wanted: tc.wanted, Allowed: private(), Widest: 12})
			if !ok {
				if tc.want != "" {
					t.Fatalf("%s: nothing chosen, want %s", tc.reason, tc.want)
				}
				return
			}
			if got.String() != tc.want {
				t.Errorf("%s: got %s, want %s", tc.reason, got, tc.want)
			}
		})
	}
}

// private are the ranges that are allowed unless the operator says otherwise.
func private() []netip.Prefix { return prefixes("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16") }

func TestChooseWithinWhatIsAllowed(t *testing.T) {
	cases := map[string]struct {
		reason                 string
		allowed, taken, wanted []netip.Prefix
		widest                 int
		want                   string
	}{
		"elsewhere":        {"not in 172.16.0.0/12", prefixes("10.200.0.0/16"), nil, nil, 12, "10.200.0.0/18"},
		"small":            {"a range that is smaller than what is usual", prefixes("192.168.16.0/20"), nil, nil, 12, "192.168.16.0/20"},
		"too small":        {"no room for Pods", prefixes("192.168.16.0/24"), nil, nil, 12, ""},
		"the second":       {"the first is full", prefixes("10.1.0.0/18", "10.2.0.0/18"), prefixes("10.1.0.0/18"), nil, 12, "10.2.0.0/18"},
		"wanted elsewhere": {"what the Cluster's ranges need is not allowed", prefixes("10.200.0.0/16"), nil, prefixes("172.31.128.0/17"), 12, "10.200.0.0/18"},
		"wanted too wide":  {"what the Cluster's ranges need is too much", prefixes("172.16.0.0/12"), nil, prefixes("172.31.128.0/17", "172.31.64.0/18"), 18, "172.16.0.0/18"},
		"narrow":           {"no network may be wider", prefixes("172.16.0.0/12"), nil, nil, 20, "172.16.0.0/20"},
		"nothing":          {"nothing is allowed", nil, nil, nil, 12, ""},
		"IPv6":             {"cannot be divided", prefixes("fd00::/8"), nil, nil, 12, ""},
		"the end":          {"there are no addresses after the last", prefixes("0.0.0.0/0"), prefixes("0.0.0.0/0"), nil, 12, ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, ok := subnet.Choose(subnet.RangeRequest{Taken: tc.taken, Wanted: tc.wanted, Allowed: tc.allowed, Widest: tc.widest})
			if ok != (tc.want != "") || ok && got.String() != tc.want {
				t.Errorf("%s: got %v, %v, want %q", tc.reason, got, ok, tc.want)
			}
		})
	}
}

func TestNodeAddress(t *testing.T) {
	l, err := subnet.NewLayout(netip.MustParsePrefix("172.31.0.0/16"))
	if err != nil {
		t.Fatal(err)
	}
	used := map[netip.Addr]bool{}
	for range 238 {
		a, ok := l.NodeAddress(used)
		if !ok || a == l.Gateway || l.Others.Contains(a) || !l.Nodes.Contains(a) || used[a] {
			t.Fatalf("after %d addresses: got %s, %v", len(used), a, ok)
		}
		used[a] = true
	}
	if a, ok := l.NodeAddress(used); ok {
		t.Errorf("all 238 addresses are in use, got %s", a)
	}
	delete(used, netip.MustParseAddr("172.31.0.7"))
	if a, _ := l.NodeAddress(used); a.String() != "172.31.0.7" {
		t.Errorf("the address that became free is used again, got %s", a)
	}
}

func TestRanges(t *testing.T) {
	l, err := subnet.NewLayout(netip.MustParsePrefix("172.31.0.0/16"))
	if err != nil {
		t.Fatal(err)
	}
	if got, ok := l.Overlapping(prefixes("172.31.128.0/17", "172.31.0.0/22")); !ok || got.String() != "172.31.0.0/22" {
		t.Errorf("a Service range over the nodes' addresses: got %s, %v", got, ok)
	}
	if _, ok := l.Overlapping(prefixes("172.31.128.0/17", "10.0.0.0/8")); ok {
		t.Error("ranges beside the nodes' addresses are no collision")
	}
	if diff := cmp.Diff(prefixes("10.0.0.0/8", "172.30.0.0/15"), l.Outside(prefixes("10.0.0.0/8", "172.31.128.0/17", "172.30.0.0/15")), byString); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestParseRoutes(t *testing.T) {
	table := "Iface\tDestination\tGateway\tFlags\tRefCnt\tUse\tMetric\tMask\tMTU\tWindow\tIRTT\n" +
		"eth0\t00000000\t010200C0\t0003\t0\t0\t0\t00000000\t0\t0\t0\n" +
		"docker0\t000011AC\t00000000\t0001\t0\t0\t0\t0000FFFF\t0\t0\t0\n" +
		"eth0\t000200C0\t00000000\t0001\t0\t0\t0\t00FFFFFF\t0\t0\t0\n"
	got, gateways, err := subnet.ParseRoutes(strings.NewReader(table))
	if err != nil {
		t.Fatal(err)
	}
	want := []subnet.Route{{Destination: netip.MustParsePrefix("172.17.0.0/16"), Interface: "docker0"}, {Destination: netip.MustParsePrefix("192.0.2.0/24"), Interface: "eth0"}}
	if diff := cmp.Diff(want, got, byString); diff != "" || len(gateways) != 1 || gateways[0] != netip.MustParseAddr("192.0.2.1") {
		t.Errorf("gateways %v; the default route is left out (-want +got):\n%s", gateways, diff)
	}
	if _, _, err := subnet.ParseRoutes(strings.NewReader("h\neth0\tzz\t0\t0\t0\t0\t0\t0\n")); err == nil {
		t.Error("a table that cannot be read must be an error")
	}
}
