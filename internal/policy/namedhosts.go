package policy

import (
	"net"
	"net/url"
	"strings"
)

// ReachableHost is a host or an address range that the configuration refers to and that this host must be able to
// reach. The Local provider chooses ranges of networks that do not contain such a host.
type ReachableHost struct {
	// Host is a name, an address, or an address range.
	Host string
	// By describes the purpose of the host for messages to users. It does not contain Host, which tenants
	// need not see.
	By string
}

// tooSmall is the shortest prefix length that is too small for the network of a cluster.
const tooSmall = 21

// ReachableHosts returns the hosts in the configuration file. Networks of clusters must not contain these addresses,
// because traffic from this host to them would be routed into the cluster network. `slipway up` and the Local provider
// pass them to the container backend, which chooses and checks the ranges of the networks.
//
// Ranges in workloads.ranges that are large enough for a network are left out, because they usually contain the
// networks of clusters on this host.
func (c Configuration) ReachableHosts() []ReachableHost {
	var out []ReachableHost
	add := func(setting, host string) {
		if host != "" {
			out = append(out, ReachableHost{Host: host, By: setting + " in the configuration file"})
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

// ReachableURL returns the host of a URL, such as a proxy or an API server. Its Host is empty if the URL has
// none. The Local provider calls it for the proxies and API servers of this host.
func ReachableURL(text, by string) ReachableHost { return ReachableHost{Host: hostOf(text), By: by} }

// hostOf returns the host of a URL without the port. The URL of a proxy may lack a scheme.
func hostOf(text string) string {
	if u, err := url.Parse(text); err == nil && u.Host != "" {
		return u.Hostname()
	}
	if strings.Contains(text, "://") { // a Unix socket
		return ""
	}
	if host, _, err := net.SplitHostPort(text); err == nil {
		return host
	}
	return ""
}
