package policy

import (
	"fmt"
	"net/netip"
	"path"
	"slices"
	"strings"
)

// settingLocation completes the messages of this file with the location of the setting. Admission returns the messages
// to users; the controllers, which check existing objects as well, show them in conditions.
const settingLocation = "in the configuration file (--config of slipway up or slipway manager)"

// DeniedMount returns why a node in the namespace may not mount the folder, or an empty string if it may. The path must
// not contain symbolic links. The LocalMachine controller and the container backend of package local call it.
func (c Configuration) DeniedMount(namespace, hostPath string, readOnly bool) string {
	clean := path.Clean(hostPath)
	for _, m := range c.Nodes.Mounts {
		if clean != m.Path && !strings.HasPrefix(clean, m.Path+"/") || len(m.Namespaces) > 0 && !slices.Contains(m.Namespaces, namespace) {
			continue
		}
		if readOnly || m.Writable {
			return ""
		}
		return fmt.Sprintf("Folder %s of this host may only be mounted read-only: set readOnly, or ask the operator to set writable for it in nodes.mounts %s", clean, settingLocation)
	}
	return fmt.Sprintf("Folder %s of this host may not be mounted by nodes of namespace %s: ask the operator to allow it in nodes.mounts %s", clean, namespace, settingLocation)
}

// DeniedImage returns why nodes may not run the image, or an empty string if they may. The container backend of package
// local and `slipway create cluster` call it.
func (c Configuration) DeniedImage(image string) string {
	repository := repositoryOf(image)
	inside := path.Clean(repository) == repository // the path does not escape an allowed prefix
	for _, allowed := range c.Nodes.Images {
		prefix, isPrefix := strings.CutSuffix(allowed, "*")
		if inside && (allowed == image || allowed == repository || isPrefix && strings.HasPrefix(repository, prefix)) {
			return ""
		}
	}
	return fmt.Sprintf("Nodes may not run image %s: omit the image to run the default one, or ask the operator to allow it in nodes.images %s", image, settingLocation)
}

// repositoryOf returns the image name without tag and digest.
func repositoryOf(image string) string {
	image, _, _ = strings.Cut(image, "@")
	if colon := strings.LastIndex(image, ":"); colon > strings.LastIndex(image, "/") {
		return image[:colon]
	}
	return image
}

// DeniedResources returns why a node may not have the requested resources, or an empty string if it may. Zero
// means that the resource is not requested. It has the same callers as [Configuration.DeniedImage].
func (c Configuration) DeniedResources(cpus int32, memoryMiB, processes int64) string {
	for _, r := range []struct {
		what, setting string
		asked, most   int64
	}{
		{"processors", "nodes.cpus", int64(cpus), int64(c.Nodes.CPUs)},
		{"MiB of memory", "nodes.memoryMiB", memoryMiB, c.Nodes.MemoryMiB},
		{"processes", "nodes.processes", processes, c.Nodes.Processes},
	} {
		if r.most > 0 && r.asked > r.most {
			return fmt.Sprintf("Nodes may have %d %s at most, not %d: request less, or ask the operator to raise %s %s",
				r.most, r.what, r.asked, r.setting, settingLocation)
		}
	}
	return ""
}

// DeniedReplicas returns why a single object may not have this number of replicas, or an empty string if it may.
// Admission calls it, and so do the controllers that create machines, because an object can be older than the limit.
func (c Configuration) DeniedReplicas(replicas int32) string {
	if most := c.Maxima.Replicas; most > 0 && replicas > most {
		return fmt.Sprintf("%d replicas exceed the limit of %d for one object: set fewer, or ask the operator to raise maxima.replicas %s", replicas, most, settingLocation)
	}
	return ""
}

// DeniedRange returns why a cluster may not use the range for its network, or an empty string if it may. The
// LocalCluster controller calls it for a requested network, and package operate/create for the subnet of a new cluster.
func (c Configuration) DeniedRange(p netip.Prefix) string {
	if p.Bits() < c.Networks.WidestPrefix {
		return fmt.Sprintf("Range %s is wider than /%d: choose a smaller one, or ask the operator to change networks.widestPrefix %s", p, c.Networks.WidestPrefix, settingLocation)
	}
	if !within(c.Networks.Ranges, p) {
		return fmt.Sprintf("Range %s is not in %s: choose another one, or ask the operator to allow it in networks.ranges %s", p, list(c.Networks.Ranges), settingLocation)
	}
	return ""
}

// DeniedInternet returns why clusters of the namespace may not have network access beyond this host, or an empty string
// if they may. The LocalCluster controller calls it.
func (c Configuration) DeniedInternet(namespace string) string {
	allowed := c.Networks.Internet
	if allowed.Allowed && (len(allowed.Namespaces) == 0 || slices.Contains(allowed.Namespaces, namespace)) {
		return ""
	}
	return fmt.Sprintf("Clusters of namespace %s may not have network access beyond this host: create the cluster without spec.backend.container.network.internet, or ask the operator to allow it in networks.internet %s", namespace, settingLocation)
}

// DeniedWorkload returns why the manager may not connect to a workload cluster at the address, or an empty
// string if it may. Package workload calls it for the address in a kubeconfig, and again for each connection.
func (c Configuration) DeniedWorkload(a netip.Addr) string {
	if len(c.Workloads.Ranges) == 0 || within(c.Workloads.Ranges, netip.PrefixFrom(a.Unmap(), a.Unmap().BitLen())) {
		return ""
	}
	return fmt.Sprintf("Address %s of the workload cluster is not in %s: ask the operator to allow it in workloads.ranges %s", a, list(c.Workloads.Ranges), settingLocation)
}

// DeniedHostNamespace returns why the SSHHosts of the namespace may not be used, or an empty string if they may.
// Admission and package ssh/inventory call it for each host.
func (c Configuration) DeniedHostNamespace(namespace string) string {
	if len(c.Hosts.Namespaces) == 0 || slices.Contains(c.Hosts.Namespaces, namespace) {
		return ""
	}
	return fmt.Sprintf("SSHHosts of namespace %s may not be used: create them in one of %s, or ask the operator to allow the namespace in hosts.namespaces %s",
		namespace, strings.Join(c.Hosts.Namespaces, ", "), settingLocation)
}

// DeniedHost returns why the SSH provider may not connect to a host, or an empty string if it may. The address is
// invalid if the host is a DNS name. Admission and package ssh/inventory call it for each host.
func (c Configuration) DeniedHost(host string, address netip.Addr) string {
	if len(c.Hosts.Ranges) == 0 || contains(c.Hosts.Ranges, address) {
		return ""
	}
	return fmt.Sprintf("Host %s is not an IP address in %s: use another address, or ask the operator to allow it in hosts.ranges %s", host, list(c.Hosts.Ranges), settingLocation)
}

// DeniedEndpoint returns why a cluster of the SSH provider may not have this control plane endpoint, or an empty string
// if it may. The address is invalid if the host is a DNS name. Admission and the SSHCluster controller call it.
func (c Configuration) DeniedEndpoint(host string, address netip.Addr) string {
	if len(c.Hosts.Endpoints) == 0 || contains(c.Hosts.Endpoints, address) {
		return ""
	}
	return fmt.Sprintf("Control plane endpoint %s is not an IP address in %s: use another one, or ask the operator to allow it in hosts.endpoints %s", host, list(c.Hosts.Endpoints), settingLocation)
}

// DeniedVirtualIP returns why control plane hosts of the SSH provider may not hold the address for a cluster of the
// namespace, or an empty string if they may. No range is allowed by default, because the address belongs to the
// operator's network. An empty namespace means any, because a template can be used in all of them. Admission and the
// SSHCluster controller call it.
func (c Configuration) DeniedVirtualIP(namespace string, address netip.Addr) string {
	var ranges []netip.Prefix
	for _, r := range c.Hosts.VirtualIPs {
		if namespace == "" || len(r.Namespaces) == 0 || slices.Contains(r.Namespaces, namespace) {
			ranges = append(ranges, r.Range)
		}
	}
	switch {
	case contains(ranges, address) && isHostAddress(address):
		return ""
	case len(ranges) == 0:
		return fmt.Sprintf("Virtual IP address %s may not be used: set controlPlaneEndpoint to a load balancer instead, or ask the operator to allow the address in hosts.virtualIPs %s", address, settingLocation)
	}
	return fmt.Sprintf("Virtual IP address %s is not the address of a host in %s: use another one, or ask the operator to allow it in hosts.virtualIPs %s", address, list(ranges), settingLocation)
}

// isHostAddress reports whether a host can have the address on a network interface.
func isHostAddress(a netip.Addr) bool {
	return a.IsGlobalUnicast() && !a.Is4In6() && a.Zone() == ""
}

// AllowsListening reports whether hosted control planes may listen at this address and port of the host. The
// HostedControlPlane controller calls it before it starts a process.
func (c Configuration) AllowsListening(at netip.AddrPort) bool {
	a := at.Addr().Unmap()
	return within(c.ControlPlanes.Addresses, netip.PrefixFrom(a, a.BitLen())) && !slices.Contains(c.ControlPlanes.ReservedPorts, int32(at.Port()))
}

// DeniedIssuer returns why API servers may not accept tokens of the issuer, or an empty string if they may. Admission
// and the HostedControlPlane controller call it.
func (c Configuration) DeniedIssuer(url string) string {
	if slices.Contains(c.ControlPlanes.Issuers, url) {
		return ""
	}
	return fmt.Sprintf("Issuer %s may not be used, because the API server would connect to it from this host: choose another one, or ask the operator to allow it in controlPlanes.issuers %s", url, settingLocation)
}

// DeniedSecret returns why an object written by a user may not copy a Secret with this name and type into a node, or an
// empty string if it may. If users cannot read Secrets ([Management.EditSecrets]), copying must not give them cluster
// credentials either. The type is empty if it is unknown, as in admission, which knows only the name. The KubeadmConfig
// controller calls it again with the type when it has read the Secret.
func (c Configuration) DeniedSecret(name, kind string) string {
	if c.Management.EditSecrets {
		return ""
	}
	ends := func(purpose string) bool { return strings.HasSuffix(name, "-"+purpose) }
	if kind == "cluster.x-k8s.io/secret" || slices.ContainsFunc(credentials(), ends) {
		return fmt.Sprintf("Secret %s may contain credentials of a cluster, which users may not read: use another Secret, or ask the operator to set management.editSecrets %s", name, settingLocation)
	}
	return ""
}

// credentials returns the name suffixes of Secrets that contain the keys, certificates and administrator kubeconfig of
// a cluster. The suffixes are those of Cluster API, and "encryption" is Slipway's.
func credentials() []string {
	return []string{"ca", "etcd", "proxy", "sa", "apiserver-etcd-client", "kubeconfig", "encryption"}
}

// Exceeded returns why no further object of a kind may be created, or an empty string if it may. The arguments own and
// all count the existing objects, in the namespace and in total. The setting is the path of the limit, such as
// maxima.nodes. Controllers and backends call it before they create an object of the kind.
func (m Maximum) Exceeded(setting, namespace string, own, all int) string {
	switch {
	case m.Namespace > 0 && own >= int(m.Namespace):
		return fmt.Sprintf("Namespace %s may have %d at most: delete some, or ask the operator to raise %s.namespace %s", namespace, m.Namespace, setting, settingLocation)
	case m.Total > 0 && all >= int(m.Total):
		return fmt.Sprintf("This management cluster may have %d at most: delete some, or ask the operator to raise %s.total %s", m.Total, setting, settingLocation)
	}
	return ""
}

// ExceededRange returns why the networks of a namespace may not have the addresses of a further range, or an
// empty string if they may. The arguments own and all count the addresses in use, in the namespace and in
// total. The Local provider calls it for the range of a new network.
func (m Maxima) ExceededRange(namespace string, p netip.Prefix, own, all int64) string {
	const remedy = "choose a smaller one, delete clusters that are not needed, or ask the operator to raise maxima.networkAddresses"
	more, most := Addresses(p), m.NetworkAddresses
	switch {
	case most.Namespace > 0 && own+more > int64(most.Namespace):
		return fmt.Sprintf("The networks of namespace %s may have %d addresses in total, which is too few for the further range %s: %s.namespace %s",
			namespace, most.Namespace, p, remedy, settingLocation)
	case most.Total > 0 && all+more > int64(most.Total):
		return fmt.Sprintf("The networks of this management cluster may have %d addresses in total, which is too few for the further range %s: %s.total %s",
			most.Total, p, remedy, settingLocation)
	}
	return ""
}

// Addresses returns the number of addresses of an IPv4 range. The Local provider counts the addresses of a namespace
// with it.
func Addresses(p netip.Prefix) int64 {
	if !p.IsValid() || !p.Addr().Is4() {
		return 0
	}
	return 1 << (32 - p.Bits())
}

func within(ranges []netip.Prefix, p netip.Prefix) bool {
	return slices.ContainsFunc(ranges, func(r netip.Prefix) bool { return r.Bits() <= p.Bits() && r.Contains(p.Addr()) })
}

// contains reports whether an address is in one of the ranges. An invalid address is in none, and one with a zone
// either, because the zone selects an interface of this host.
func contains(ranges []netip.Prefix, a netip.Addr) bool {
	a = a.Unmap()
	return a.IsValid() && a.Zone() == "" && within(ranges, netip.PrefixFrom(a, a.BitLen()))
}

func list(ranges []netip.Prefix) string {
	var out []string
	for _, r := range ranges {
		out = append(out, r.String())
	}
	return strings.Join(out, ", ")
}

// DeniedSnapshotFolder returns why snapshots of the namespace may not be stored in the folder of this host, or an empty
// string if they may. Admission calls it, and package snapshots before it opens a store.
func (c Configuration) DeniedSnapshotFolder(namespace, folder string) string {
	clean := path.Clean(folder)
	for _, f := range c.Snapshots.Folders {
		if (clean == f.Path || strings.HasPrefix(clean, f.Path+"/")) && (len(f.Namespaces) == 0 || slices.Contains(f.Namespaces, namespace)) {
			return ""
		}
	}
	return fmt.Sprintf("Folder %s of this host may not have snapshots of namespace %s: leave spec.destination.folder.path empty, or ask the operator to allow it in snapshots.folders %s", clean, namespace, settingLocation)
}

// DeniedSnapshotEndpoint returns why the manager may not connect to the endpoint of a snapshot store, or an empty
// string if it may. Admission calls it, and package snapshots before it opens a store.
func (c Configuration) DeniedSnapshotEndpoint(endpoint string) string {
	if slices.Contains(c.Snapshots.Endpoints, endpoint) {
		return ""
	}
	return fmt.Sprintf("Endpoint %s may not be used for snapshots, because the manager would connect to it from this host: choose another one, or ask the operator to allow it in snapshots.endpoints %s", endpoint, settingLocation)
}
