package kernel

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

	"github.com/slipwayhq/slipway/internal/policy"
	"github.com/slipwayhq/slipway/internal/providers/local/backend"
	"github.com/slipwayhq/slipway/internal/providers/local/subnet"
)

const (
	// neighbours is the length of the prefix that is left to a host behind the default route. How wide its network is cannot be
	// known from here; a private network of a site is seldom wider.
	neighbours = 16
	// resolving bounds how long the names are resolved altogether. A name that does not resolve reserves nothing.
	resolving = 3 * time.Second
)

// Ranges returns what no network on this host may take, IPv4 only: where its routes lead, the networks of its interfaces, and the
// hosts that it reaches through its default route as far as they are named by its own files or by somebody it trusts. Such a host
// counts with its neighbours.
func (h Host) Ranges(ctx context.Context, named []policy.Named) ([]backend.Taken, error) {
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
	return append(out, beyond(out, h.resolve(ctx, append(own, named...)))...), nil
}

func (h Host) routes() ([]backend.Taken, error) {
	table, err := os.Open(filepath.Join(h.Proc, "net/route"))
	if err != nil {
		return nil, err
	}
	defer table.Close()
	routes, err := subnet.ParseRoutes(table)
	if err != nil {
		return nil, err
	}
	var out []backend.Taken
	for _, r := range routes {
		out = append(out, backend.Taken{Range: r.Destination, By: "a route of this host through " + r.Interface})
	}
	return out, nil
}

func interfaceRanges() ([]backend.Taken, error) {
	interfaces, err := net.Interfaces()
	if err != nil {
		return nil, err
	}
	var out []backend.Taken
	for _, i := range interfaces {
		addresses, err := i.Addrs()
		if err != nil {
			return nil, err
		}
		for _, a := range addresses {
			if p, err := netip.ParsePrefix(a.String()); err == nil && p.Addr().Is4() {
				out = append(out, backend.Taken{Range: p.Masked(), By: fmt.Sprintf("address %s of this host's interface %s", p.Addr(), i.Name)})
			}
		}
	}
	return out, nil
}

// Named returns the hosts that this host's own files name: gateways, name servers, the hosts file and time servers.
func (h Host) Named() ([]policy.Named, error) {
	table, err := os.Open(filepath.Join(h.Proc, "net/route"))
	if err != nil {
		return nil, err
	}
	defer table.Close()
	gateways, err := subnet.ParseGateways(table)
	if err != nil {
		return nil, err
	}
	var out []policy.Named
	for _, a := range gateways {
		out = append(out, policy.Named{Host: a.String(), By: "a gateway of this host"})
	}
	for _, file := range h.Resolvers {
		text, err := optional(file)
		if err != nil {
			return nil, err
		}
		for _, a := range nameServers(text) {
			out = append(out, policy.Named{Host: a.String(), By: "a name server of this host"})
		}
	}
	text, err := optional(h.Hosts)
	if err != nil {
		return nil, err
	}
	for _, fields := range lines(text) {
		out = append(out, policy.Named{Host: fields[0], By: "a host in the hosts file of this host"})
	}
	for _, file := range h.Times {
		text, err := optional(file)
		if err != nil {
			return nil, err
		}
		for _, host := range timeServers(text) {
			out = append(out, policy.Named{Host: host, By: "a time server of this host"})
		}
	}
	return out, nil
}

// optional reads a file that need not exist or be readable by this user: it is another program's.
func optional(file string) (string, error) {
	if file == "" {
		return "", nil
	}
	text, err := os.ReadFile(file)
	if err != nil && !errors.Is(err, os.ErrNotExist) && !errors.Is(err, os.ErrPermission) {
		return "", fmt.Errorf("reading what this host reaches: %w", err)
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

// resolve returns the addresses of what is named; a range stays one. Names are resolved at the same time, because one that does not
// resolve takes as long as it may.
func (h Host) resolve(ctx context.Context, named []policy.Named) []backend.Taken {
	lookup := h.Lookup
	if lookup == nil {
		lookup = net.DefaultResolver.LookupNetIP
	}
	ctx, cancel := context.WithTimeout(ctx, resolving)
	defer cancel()
	found := make([][]backend.Taken, len(named))
	var names sync.WaitGroup
	for n, item := range named {
		if p, err := netip.ParsePrefix(item.Host); err == nil {
			found[n] = []backend.Taken{{Range: p.Masked(), By: item.By}}
			continue
		}
		if a, err := netip.ParseAddr(item.Host); err == nil {
			found[n] = single(item, a)
			continue
		}
		if item.Host == "" || item.Host == "localhost" {
			continue
		}
		names.Go(func() {
			addresses, _ := lookup(ctx, "ip4", item.Host) // a name without an address reserves nothing
			for _, a := range addresses {
				found[n] = append(found[n], single(item, a)...)
			}
		})
	}
	names.Wait()
	return slices.Concat(found...)
}

func single(item policy.Named, a netip.Addr) []backend.Taken {
	if a = a.Unmap(); !a.Is4() || a.IsLoopback() || a.IsUnspecified() || a.IsMulticast() {
		return nil
	}
	return []backend.Taken{{Range: netip.PrefixFrom(a, a.BitLen()), By: item.By}}
}

// beyond returns the named ranges that nothing of what is known holds. A single address among them is reached through the default
// route, and counts with its neighbours.
func beyond(known, named []backend.Taken) []backend.Taken {
	var out []backend.Taken
	for _, n := range named {
		holds := func(k backend.Taken) bool {
			return k.Range.Bits() <= n.Range.Bits() && k.Range.Contains(n.Range.Addr())
		}
		if slices.ContainsFunc(known, holds) || slices.ContainsFunc(out, holds) {
			continue
		}
		if n.Range.IsSingleIP() {
			n.Range = netip.PrefixFrom(n.Range.Addr(), neighbours).Masked()
		}
		out = append(out, n)
	}
	return out
}
