package subnet_test

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/slipwayhq/slipway/internal/subnet"
)

func TestDivide(t *testing.T) {
	type parts struct{ Nodes, Services, Pods string }
	cases := map[string]struct {
		reason   string
		in       string
		want     parts
		maxNodes int
		err      string
	}{
		"usual": {
			reason:   "a /18 has a quarter for nodes, a quarter for Services, a half for Pods",
			in:       "172.31.192.0/18",
			want:     parts{"172.31.192.0/20", "172.31.208.0/20", "172.31.224.0/19"},
			maxNodes: 32,
		},
		"wide": {
			reason:   "a /16 is divided the same way",
			in:       "172.31.0.0/16",
			want:     parts{"172.31.0.0/18", "172.31.64.0/18", "172.31.128.0/17"},
			maxNodes: 128,
		},
		"widest": {
			reason:   "Services never get more than a /16",
			in:       "10.0.0.0/8",
			want:     parts{"10.0.0.0/10", "10.64.0.0/16", "10.128.0.0/9"},
			maxNodes: 32768,
		},
		"smallest": {
			reason:   "a /20 still holds 8 nodes",
			in:       "192.168.16.0/20",
			want:     parts{"192.168.16.0/22", "192.168.20.0/22", "192.168.24.0/21"},
			maxNodes: 8,
		},
		"too small": {reason: "Pods of one node need a /24", in: "192.168.16.0/21", err: "between /8 and /20"},
		"host bits": {reason: "a typing mistake is not guessed away", in: "172.31.1.0/16", err: "did you mean 172.31.0.0/16?"},
		"IPv6":      {reason: "the local network is IPv4", in: "fd00::/16", err: "not an IPv4 network"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := subnet.Divide(netip.MustParsePrefix(tc.in))
			if tc.err != "" {
				if err == nil || !strings.Contains(err.Error(), tc.err) {
					t.Fatalf("%s: got error %v, want one with %q", tc.reason, err, tc.err)
				}
				return
			}
			if err != nil {
				t.Fatalf("%s: %v", tc.reason, err)
			}
			if d := cmp.Diff(tc.want, parts{got.Nodes.String(), got.Services.String(), got.Pods.String()}); d != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, d)
			}
			if got.MaxNodes() != tc.maxNodes {
				t.Errorf("%s: room for %d nodes, want %d", tc.reason, got.MaxNodes(), tc.maxNodes)
			}
		})
	}
}

// The parts lie inside the subnet and do not overlap, whatever its size: traffic to any of them stays on the
// host, and no address has two meanings.
func TestPartsAreDisjointAndInside(t *testing.T) {
	for bits := subnet.MinBits; bits <= subnet.MaxBits; bits++ {
		whole := netip.PrefixFrom(netip.MustParseAddr("10.0.0.0"), bits)
		l, err := subnet.Divide(whole)
		if err != nil {
			t.Fatal(err)
		}
		parts := []netip.Prefix{l.Nodes, l.Services, l.Pods}
		for i, p := range parts {
			if p != p.Masked() || p.Bits() < whole.Bits() || !whole.Contains(p.Addr()) {
				t.Errorf("/%d: %s is not a network inside %s", bits, p, whole)
			}
			for _, q := range parts[i+1:] {
				if p.Overlaps(q) {
					t.Errorf("/%d: %s and %s overlap", bits, p, q)
				}
			}
		}
	}
}

func TestFree(t *testing.T) {
	cases := map[string]struct {
		reason string
		pool   string
		bits   int
		used   []string
		want   string
		err    string
	}{
		"first":          {"the highest part is taken first", "172.16.0.0/12", 18, nil, "172.31.192.0/18", ""},
		"next":           {"a used part is skipped", "172.16.0.0/12", 18, []string{"172.31.192.0/18"}, "172.31.128.0/18", ""},
		"wider in use":   {"a wider network takes four parts", "172.16.0.0/12", 18, []string{"172.31.0.0/16"}, "172.30.192.0/18", ""},
		"smaller in use": {"one address in use is enough", "172.16.0.0/12", 18, []string{"172.31.200.7/32"}, "172.31.128.0/18", ""},
		"gap":            {"a part that was given back is used again", "172.16.0.0/12", 18, []string{"172.31.128.0/18"}, "172.31.192.0/18", ""},
		"elsewhere":      {"other ranges do not matter", "172.16.0.0/12", 18, []string{"10.0.0.0/8", "fd00::/8"}, "172.31.192.0/18", ""},
		"full":           {"the message says what can be done", "172.16.0.0/12", 18, []string{"172.16.0.0/12"}, "", "delete a cluster"},
		"too wide":       {"a request that cannot fit", "172.16.0.0/12", 8, nil, "", "no /8 fits"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var used []netip.Prefix
			for _, u := range tc.used {
				used = append(used, netip.MustParsePrefix(u))
			}
			got, err := subnet.Free(netip.MustParsePrefix(tc.pool), tc.bits, used)
			if tc.err != "" {
				if err == nil || !strings.Contains(err.Error(), tc.err) {
					t.Fatalf("%s: got error %v, want one with %q", tc.reason, err, tc.err)
				}
				return
			}
			if err != nil || got.String() != tc.want {
				t.Errorf("%s: got %s, %v, want %s", tc.reason, got, err, tc.want)
			}
		})
	}
}

func TestPool(t *testing.T) {
	if got := subnet.Pool(); !got.Addr().IsPrivate() || got.Bits() >= subnet.Bits {
		t.Errorf("the pool %s must be private and hold more than one subnet", got)
	}
}
