package subnet_test

import (
	"net/netip"
	"testing"

	"github.com/slipwayhq/slipway/internal/local/subnet"
)

func TestRangesOfANewCluster(t *testing.T) {
	cases := map[string]struct {
		reason   string
		subnet   string
		services string
		pods     string
		nodes    int
	}{
		"chosen":   {"what a cluster gets that asks for nothing", "172.16.64.0/18", "172.16.80.0/20", "172.16.96.0/19", 32},
		"wide":     {"a /16 is divided the same way", "172.31.0.0/16", "172.31.64.0/18", "172.31.128.0/17", 128},
		"widest":   {"Services never get more than a /16", "10.0.0.0/8", "10.64.0.0/16", "10.128.0.0/9", 32768},
		"smallest": {"a /20 still holds 8 nodes", "192.168.16.0/20", "192.168.20.0/22", "192.168.24.0/21", 8},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			l, err := subnet.NewLayout(netip.MustParsePrefix(tc.subnet))
			if err != nil {
				t.Fatal(err)
			}
			got := l.Ranges()
			if got.Services.String() != tc.services || got.Pods.String() != tc.pods || got.MaxNodes() != tc.nodes {
				t.Errorf("%s: got %s, %s for %d nodes, want %s, %s for %d", tc.reason,
					got.Services, got.Pods, got.MaxNodes(), tc.services, tc.pods, tc.nodes)
			}
		})
	}
}

// The parts lie inside the network and do not overlap, whatever its size: traffic to any of them stays on the
// host, and no address has two meanings.
func TestRangesAreDisjointAndInside(t *testing.T) {
	for bits := 8; bits <= 20; bits++ {
		l, err := subnet.NewLayout(netip.PrefixFrom(netip.MustParseAddr("10.0.0.0"), bits))
		if err != nil {
			t.Fatal(err)
		}
		r := l.Ranges()
		parts := []netip.Prefix{l.Nodes, r.Services, r.Pods}
		if outside := l.Outside(parts); len(outside) > 0 {
			t.Errorf("/%d: %s outside %s", bits, outside, l.Subnet)
		}
		for i, p := range parts {
			if p != p.Masked() {
				t.Errorf("/%d: %s has host bits set", bits, p)
			}
			for _, q := range parts[i+1:] {
				if p.Overlaps(q) {
					t.Errorf("/%d: %s and %s overlap", bits, p, q)
				}
			}
		}
	}
}
