package container

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/slipwayhq/slipway/internal/local/backend"
	"github.com/slipwayhq/slipway/internal/local/subnet"
	"github.com/slipwayhq/slipway/internal/policy"
)

const (
	// neighbourPrefixBits is the prefix length of the range that is reserved around a host behind the default route.
	// The real size of its network is unknown here, but private networks of a site are seldom larger.
	neighbourPrefixBits = 16
	// resolveTimeout limits the total time for resolving names. A name that does not resolve reserves nothing.
	resolveTimeout = 3 * time.Second
)

// Ranges returns the IPv4 ranges that no network on this host may use: the destinations of its routes, the networks of
// its interfaces, and the hosts behind its default route that its own files or the named list mention.
// [Engine.UsedRanges] calls it before a network is created, and `slipway create cluster` to choose a range. Such a host
// is reserved together with its neighbours.
func (h KernelHost) Ranges(ctx context.Context, named []policy.ReachableHost) ([]backend.UsedRange, error) {
	out, err := h.routes()
	if err != nil {
		return nil, err
	}
	interfaces, err := interfaceRanges()
	if err != nil {
		return nil, err
	}
	out = append(out, interfaces...)
	own, err := h.Named()
	if err != nil {
		return nil, err
	}
	return append(out, outsideKnown(out, h.resolve(ctx, append(own, named...)))...), nil
}

// routeTable returns the routes of the host and their gateways.
func (h KernelHost) routeTable() ([]subnet.Route, []netip.Addr, error) {
	table, err := os.Open(filepath.Join(h.Proc, "net/route"))
	if err != nil {
		return nil, nil, err
	}
	defer table.Close()
	return subnet.ParseRoutes(table)
}

func (h KernelHost) routes() ([]backend.UsedRange, error) {
	routes, _, err := h.routeTable()
	if err != nil {
		return nil, err
	}
	var out []backend.UsedRange
	for _, r := range routes {
		out = append(out, backend.UsedRange{Range: r.Destination, By: "a route of this host through " + r.Interface})
	}
	return out, nil
}

func interfaceRanges() ([]backend.UsedRange, error) {
	interfaces, err := net.Interfaces()
	if err != nil {
		return nil, err
	}
	var out []backend.UsedRange
	for _, i := range interfaces {
		addresses, err := i.Addrs()
		if err != nil {
			return nil, err
		}
		for _, a := range addresses {
			if p, err := netip.ParsePrefix(a.String()); err == nil && p.Addr().Is4() {
				out = append(out, backend.UsedRange{Range: p.Masked(), By: fmt.Sprintf("address %s of this host's interface %s", p.Addr(), i.Name)})
			}
		}
	}
	return out, nil
}

// Named returns the hosts in the configuration of this host: gateways, name servers, the hosts file and time servers.
func (h KernelHost) Named() ([]policy.ReachableHost, error) {
	_, gateways, err := h.routeTable()
	if err != nil {
		return nil, err
	}
	var out []policy.ReachableHost
	for _, a := range gateways {
		out = append(out, policy.ReachableHost{Host: a.String(), By: "a gateway of this host"})
	}
	for _, file := range h.Resolvers {
		text, err := readOptionalFile(file)
		if err != nil {
			return nil, err
		}
		for _, a := range nameServers(text) {
			out = append(out, policy.ReachableHost{Host: a.String(), By: "a name server of this host"})
		}
	}
	text, err := readOptionalFile(h.Hosts)
	if err != nil {
		return nil, err
	}
	for _, fields := range lines(text) {
		out = append(out, policy.ReachableHost{Host: fields[0], By: "a host in the hosts file of this host"})
	}
	for _, file := range h.Times {
		text, err := readOptionalFile(file)
		if err != nil {
			return nil, err
		}
		for _, host := range timeServers(text) {
			out = append(out, policy.ReachableHost{Host: host, By: "a time server of this host"})
		}
	}
	return out, nil
}

// readOptionalFile reads a file of another program, which may be missing or unreadable for this user.
func readOptionalFile(file string) (string, error) {
	if file == "" {
		return "", nil
	}
	text, err := os.ReadFile(file)
	if err != nil && !errors.Is(err, os.ErrNotExist) && !errors.Is(err, os.ErrPermission) {
		return "", fmt.Errorf("reading the hosts that this host uses: %w", err)
	}
	return string(text), nil
}

// lines returns the fields of each line that has any, without comments.
func lines(text string) [][]string {
	var out [][]string
	for _, line := range strings.Split(text, "\n") {
		line, _, _ = strings.Cut(line, "#")
		if fields := strings.Fields(line); len(fields) > 0 {
			out = append(out, fields)
		}
	}
	return out
}

// timeServers returns the hosts in a configuration of systemd-timesyncd, chrony or ntpd.
func timeServers(text string) []string {
	var out []string
	for _, fields := range lines(text) {
		switch first, rest, assigned := strings.Cut(strings.Join(fields, " "), "="); {
		case assigned && (strings.TrimSpace(first) == "NTP" || strings.TrimSpace(first) == "FallbackNTP"):
			out = append(out, strings.Fields(rest)...)
		case len(fields) > 1 && slices.Contains([]string{"server", "pool", "peer"}, fields[0]):
			out = append(out, fields[1])
		}
	}
	return out
}

// resolve returns the addresses of the named hosts; ranges are returned as they are. Names are resolved concurrently,
// because one that does not resolve takes the whole time limit.
func (h KernelHost) resolve(ctx context.Context, named []policy.ReachableHost) []backend.UsedRange {
	lookup := h.Lookup
	if lookup == nil {
		lookup = net.DefaultResolver.LookupNetIP
	}
	ctx, cancel := context.WithTimeout(ctx, resolveTimeout)
	defer cancel()
	found := make([][]backend.UsedRange, len(named))
	var names sync.WaitGroup
	for n, item := range named {
		if p, err := netip.ParsePrefix(item.Host); err == nil {
			found[n] = []backend.UsedRange{{Range: p.Masked(), By: item.By}}
			continue
		}
		if a, err := netip.ParseAddr(item.Host); err == nil {
			found[n] = singleAddressRange(item, a)
			continue
		}
		if item.Host == "" || item.Host == "localhost" {
			continue
		}
		names.Go(func() {
			addresses, _ := lookup(ctx, "ip4", item.Host) // a name without an address reserves nothing
			for _, a := range addresses {
				found[n] = append(found[n], singleAddressRange(item, a)...)
			}
		})
	}
	names.Wait()
	return slices.Concat(found...)
}

func singleAddressRange(item policy.ReachableHost, a netip.Addr) []backend.UsedRange {
	if a = a.Unmap(); !a.Is4() || a.IsLoopback() || a.IsUnspecified() || a.IsMulticast() {
		return nil
	}
	return []backend.UsedRange{{Range: netip.PrefixFrom(a, a.BitLen()), By: item.By}}
}

// outsideKnown returns the named ranges that no known range contains. A single address among them is behind the default
// route and is reserved together with its neighbours.
func outsideKnown(known, named []backend.UsedRange) []backend.UsedRange {
	var out []backend.UsedRange
	for _, n := range named {
		holds := func(k backend.UsedRange) bool {
			return k.Range.Bits() <= n.Range.Bits() && k.Range.Contains(n.Range.Addr())
		}
		if slices.ContainsFunc(known, holds) || slices.ContainsFunc(out, holds) {
			continue
		}
		if n.Range.IsSingleIP() {
			n.Range = netip.PrefixFrom(n.Range.Addr(), neighbourPrefixBits).Masked()
		}
		out = append(out, n)
	}
	return out
}
