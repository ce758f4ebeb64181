package subnet_test

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/slipwayhq/slipway/internal/local/subnet"
)

// FuzzRanges: whatever ranges a Cluster and a LocalCluster ask for, what is chosen is allowed, free, and can be divided.
func FuzzRanges(f *testing.F) {
	f.Add("10.244.0.0/16", "10.96.0.0/12", "172.16.0.0/18", "172.16.0.0/12", 12)
	f.Add("172.31.128.0/17", "172.31.64.0/18", "8.8.0.0/16", "10.0.0.0/8", 8)
	f.Add("0.0.0.0/0", "255.255.255.255/32", "0.0.0.0/0", "0.0.0.0/0", 20)
	f.Add("fd00::/64", "::ffff:10.0.0.0/104", "224.0.0.0/4", "255.255.0.0/16", 9)
	f.Add("", "10.0.0.1/8", "banana", "127.0.0.0/8", 0)
	f.Fuzz(func(t *testing.T, pods, services, taken, allowed string, widest int) {
		parse := func(texts ...string) []netip.Prefix {
			var out []netip.Prefix
			for _, text := range texts {
				if p, err := netip.ParsePrefix(text); err == nil {
					out = append(out, p.Masked())
				}
			}
			return out
		}
		for _, p := range parse(pods, services, taken) {
			if l, err := subnet.NewLayout(p); err == nil {
				r := l.Ranges()
				if len(l.Outside([]netip.Prefix{r.Pods, r.Services, l.Nodes})) > 0 || !l.Nodes.Contains(l.Gateway) {
					t.Errorf("%s is divided into %+v and %+v", p, l, r)
				}
			}
		}
		widest = max(8, min(widest, 20))
		request := subnet.RangeRequest{Taken: parse(taken), Wanted: parse(pods, services), Allowed: parse(allowed), Widest: widest}
		got, ok := subnet.Choose(request)
		if !ok {
			return
		}
		if _, err := subnet.NewLayout(got); err != nil {
			t.Errorf("chosen: %v", err)
		}
		for _, p := range request.Taken {
			if p.Overlaps(got) {
				t.Errorf("%s overlaps %s, which is taken", got, p)
			}
		}
		for _, p := range request.Allowed {
			if got.Bits() < p.Bits() || !p.Contains(got.Addr()) || got.Bits() < widest {
				t.Errorf("%s is not in %s, or wider than /%d", got, p, widest)
			}
		}
	})
}

// FuzzParseRoutes: a table that cannot be read is an error or is read in part, and what is read are IPv4 ranges.
func FuzzParseRoutes(f *testing.F) {
	f.Add("Iface\tDestination\nwg0\t0000000A\t00000000\t0001\t0\t0\t0\t000000FF\t0\t0\t0\n")
	f.Add("Iface\neth0\t00000000\t010200C0\t0003\t0\t0\t0\t00000000\n")
	f.Add("Iface\neth0\tzz\t0\t0\t0\t0\t0\t00FF00FF\n")
	f.Fuzz(func(t *testing.T, table string) {
		routes, _, err := subnet.ParseRoutes(strings.NewReader(table))
		if err != nil {
			return
		}
		for _, r := range routes {
			if !r.Destination.IsValid() || !r.Destination.Addr().Is4() || r.Destination != r.Destination.Masked() {
				t.Errorf("%+v", r)
			}
		}
	})
}
