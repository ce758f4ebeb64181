package policy

import (
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"path"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/json"
	"sigs.k8s.io/yaml"

	hostedv1 "github.com/slipwayhq/slipway/api/controlplane/v1alpha1"
	"github.com/slipwayhq/slipway/internal/controlplane/componentconfig"
	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/providerset"
)

// Parse parses a configuration file and applies the defaults. `slipway up` and `slipway manager` call it for the file
// of --config. The error lists all problems of the file.
func Parse(text []byte) (Configuration, error) {
	c := Default()
	c.APIVersion, c.Kind = "", ""
	if err := decode(text, &c); err != nil {
		return Configuration{}, invalid(err)
	}
	if c.APIVersion != apiVersion || c.Kind != kind {
		return Configuration{}, invalid(fmt.Errorf("apiVersion is %q and kind is %q: set apiVersion: %s and kind: %s", c.APIVersion, c.Kind, apiVersion, kind))
	}
	if err := errors.Join(c.problems()...); err != nil {
		return Configuration{}, invalid(err)
	}
	return c, nil
}

// decode decodes YAML. The error contains the path of every unknown setting.
func decode(text []byte, into *Configuration) error {
	content, err := yaml.YAMLToJSONStrict(text)
	if err != nil {
		return err
	}
	unknown, err := json.UnmarshalStrict(content, into)
	return errors.Join(append(unknown, err)...)
}

func invalid(err error) error {
	return fault.New(fault.Invalid, "InvalidConfiguration",
		"the configuration file is invalid; correct it and try again (--print-config shows all settings):\n  %s",
		strings.ReplaceAll(err.Error(), "\n", "\n  ")).From(err)
}

// problems returns everything that is wrong with a decoded file, sorted, with the path of each setting.
func (c Configuration) problems() []error {
	var out []error
	wrong := func(format string, args ...any) { out = append(out, fmt.Errorf(format, args...)) }
	for _, p := range providerset.Unknown(c.Providers.Disabled) {
		wrong("providers.disabled: %q is not one of %s", p, providerset.List(providerset.Names()))
	}
	if len(c.Sets()) == 0 {
		wrong("providers.disabled: no provider would run: remove one of %s", providerset.List(providerset.Names()))
	}
	for _, problem := range componentconfig.Problems(hostedv1.Security{Audit: c.Management.Audit, Authentication: c.Management.Authentication}, field.NewPath("management")) {
		wrong("%s", problem.Error())
	}
	for _, problem := range c.Management.unreachable() {
		wrong("%s", problem)
	}
	folder := func(setting, name string) {
		if !path.IsAbs(name) || path.Clean(name) != name || name == "/" {
			wrong("%s: path %q: set the absolute path of a folder other than /, without .. and without a slash at the end", setting, name)
		}
	}
	for _, m := range c.Nodes.Mounts {
		folder("nodes.mounts", m.Path)
	}
	for _, f := range c.Snapshots.Folders {
		folder("snapshots.folders", f.Path)
	}
	for _, e := range c.Snapshots.Endpoints {
		if u, err := url.Parse("https://" + e); err != nil || u.Host != e || e == "" {
			wrong("snapshots.endpoints: %q: set the host of the endpoint, with a port if necessary", e)
		}
	}
	for _, i := range c.Nodes.Images {
		if i == "" || i == "*" || strings.Contains(strings.TrimSuffix(i, "/*"), "*") {
			wrong("nodes.images: %q: set an image, a repository, or a prefix that ends with /*", i)
		}
	}
	if b := c.Networks.WidestPrefix; b < 8 || b > 20 {
		wrong("networks.widestPrefix is %d: choose 8 to 20", b)
	}
	virtual := make([]netip.Prefix, 0, len(c.Hosts.VirtualIPs))
	for _, r := range c.Hosts.VirtualIPs {
		virtual = append(virtual, r.Range)
	}
	for where, ranges := range map[string][]netip.Prefix{
		"networks.ranges": c.Networks.Ranges, "controlPlanes.addresses": c.ControlPlanes.Addresses, "workloads.ranges": c.Workloads.Ranges,
		"hosts.ranges": c.Hosts.Ranges, "hosts.endpoints": c.Hosts.Endpoints, "hosts.virtualIPs": virtual,
	} {
		for _, r := range ranges {
			if !r.IsValid() || r != r.Masked() {
				wrong("%s: %s has host bits set: use %s", where, r, r.Masked())
			}
		}
	}
	for _, a := range c.Networks.Internet.NameServers {
		if !a.Is4() || a.IsLoopback() || a.IsUnspecified() || a.IsMulticast() {
			wrong("networks.internet.nameServers: %s: set an IPv4 address that Pods can reach, which is not a loopback address", a)
		}
	}
	for _, i := range c.ControlPlanes.Issuers {
		if u, err := url.Parse(i); err != nil || u.Scheme != "https" || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
			wrong("controlPlanes.issuers: %q: set the https URL of an issuer, without user, query and fragment", i)
		}
	}
	if m := c.Manager.MemoryMiB; m > 0 && m < leastManagerMemory {
		wrong("manager.memoryMiB is %d: choose 0 (half of the memory of this host) or at least %d", m, leastManagerMemory)
	}
	if m := c.Management.MemoryMiB; m > 0 && m < leastManagementMemory {
		wrong("management.memoryMiB is %d: choose 0 (two fifths of the memory of this host) or at least %d", m, leastManagementMemory)
	}
	if n := c.Hosts.AtOnce; n < 2 || n > mostHosts {
		wrong("hosts.atOnce is %d: choose 2 to %d", n, mostHosts)
	}
	for name, n := range c.numbers() {
		if n < 0 {
			wrong("%s is %d: choose 0 (no limit) or more", name, n)
		}
	}
	slices.SortFunc(out, func(a, b error) int { return strings.Compare(a.Error(), b.Error()) })
	return out
}

// mostHosts is the largest accepted number of hosts that are worked on at the same time.
const mostHosts = 500

// numbers returns all settings that are numbers, by path. None of them may be negative; a new one must be added here.
func (c Configuration) numbers() map[string]int64 {
	m := c.Maxima
	return map[string]int64{
		"nodes.cpus": int64(c.Nodes.CPUs), "nodes.memoryMiB": c.Nodes.MemoryMiB, "nodes.processes": c.Nodes.Processes,
		"maxima.replicas":        int64(m.Replicas),
		"snapshots.namespaceMiB": c.Snapshots.NamespaceMiB,
		"manager.memoryMiB":      c.Manager.MemoryMiB,
		"management.memoryMiB":   c.Management.MemoryMiB,
		"maxima.nodes.namespace": int64(m.Nodes.Namespace), "maxima.nodes.total": int64(m.Nodes.Total),
		"maxima.networks.namespace": int64(m.Networks.Namespace), "maxima.networks.total": int64(m.Networks.Total),
		"maxima.networkAddresses.namespace": int64(m.NetworkAddresses.Namespace), "maxima.networkAddresses.total": int64(m.NetworkAddresses.Total),
		"maxima.controlPlanes.namespace": int64(m.ControlPlanes.Namespace), "maxima.controlPlanes.total": int64(m.ControlPlanes.Total),
		"maxima.simulatedNodes.namespace": int64(m.SimulatedNodes.Namespace), "maxima.simulatedNodes.total": int64(m.SimulatedNodes.Total),
		"maxima.simulatedControlPlanes.namespace": int64(m.SimulatedControlPlanes.Namespace),
		"maxima.simulatedControlPlanes.total":     int64(m.SimulatedControlPlanes.Total),
		"maxima.simulatedObjects":                 int64(m.SimulatedObjects),
	}
}

// unreachable returns the problems of the management cluster's addresses and names.
func (m Management) unreachable() []string {
	var out []string
	for _, a := range m.Addresses {
		if ip, err := netip.ParseAddr(a); err != nil || ip.IsUnspecified() || ip.Zone() != "" {
			out = append(out, fmt.Sprintf("management.addresses: %q: set an IP address of this host, such as 192.0.2.10", a))
		}
	}
	for _, n := range m.Names {
		_, err := netip.ParseAddr(n)
		if err != nil && len(validation.IsDNS1123Subdomain(n)) > 0 && len(validation.IsWildcardDNS1123Subdomain(n)) > 0 {
			out = append(out, fmt.Sprintf("management.names: %q: set a host name, such as clusters.example.com, or an IP address", n))
		}
	}
	return out
}
