package policy

import (
	"net"
	"net/url"
	"strings"
)

// Named is a host or a range of addresses that somebody other than a tenant names, and that this host therefore has to reach.
type Named struct {
	// Host is a name, an address, or a range of addresses.
	Host string
	// By describes in a sentence for users what it is. It does not repeat Host, which tenants have no need to learn.
	By string
}

// tooSmall is the length of prefixes that have no room for the network of a cluster.
const tooSmall = 21

// Named returns what the configuration file names. No network of a cluster may take these addresses, because the traffic of this
// host to them would end in that network.
//
// Ranges of workloads.ranges that are large enough for networks are left out: they are what networks of clusters on this host are
// reached by where the setting is used.
func (c Configuration) Named() []Named {
	var out []Named
	add := func(setting, host string) {
		if host != "" {
			out = append(out, Named{Host: host, By: "what " + setting + " in the configuration file names"})
		}
	}
	for _, e := range c.Snapshots.Endpoints {
		add("snapshots.endpoints", hostOf("https://"+e))
	}
	for _, i := range c.ControlPlanes.Issuers {
		add("controlPlanes.issuers", hostOf(i))
	}
	for _, a := range c.ControlPlanes.Addresses {
		add("controlPlanes.addresses", a.String())
	}
	for _, p := range c.Workloads.Proxies {
		add("workloads.proxies", hostOf(p))
	}
	for _, r := range c.Workloads.Ranges {
		if r.Bits() >= tooSmall {
			add("workloads.ranges", r.String())
		}
	}
	for _, a := range c.Networks.Internet.NameServers {
		add("networks.internet.nameServers", a.String())
	}
	for _, a := range c.Management.Addresses {
		add("management.addresses", a)
	}
	if c.Management.Authentication != nil {
		for _, j := range c.Management.Authentication.JWT {
			add("management.authentication", hostOf(j.Issuer.URL))
		}
	}
	return out
}

// NamedURL returns the host of a URL, such as that of a proxy or an API server; its Host is empty where there is none.
func NamedURL(text, by string) Named { return Named{Host: hostOf(text), By: by} }

// hostOf returns the host of a URL without its port. A proxy may be named without a scheme.
func hostOf(text string) string {
	if u, err := url.Parse(text); err == nil && u.Host != "" {
		return u.Hostname()
	}
	if strings.Contains(text, "://") { // a socket
		return ""
	}
	if host, _, err := net.SplitHostPort(text); err == nil {
		return host
	}
	return ""
}
