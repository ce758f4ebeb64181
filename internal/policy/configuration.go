package policy

import (
	"bytes"
	"encoding/json"
	"net/netip"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hostedv1 "github.com/slipwayhq/slipway/api/controlplane/v1alpha1"
	"github.com/slipwayhq/slipway/internal/providerset"
)

// apiVersion and kind identify the configuration file.
const (
	apiVersion = "config.slipway.dev/v1alpha1"
	kind       = "Configuration"
)

// Configuration is the content of the operator's configuration file, which `slipway up` and `slipway manager` read at
// their start. Admission and the controllers get it as their policy ([Configuration.DeniedImage], for example). The
// JSON names are the file format: they must not change within an apiVersion. [Default] applies to settings that the
// file leaves out.
type Configuration struct {
	metav1.TypeMeta `json:",inline"`

	// Providers selects the built-in providers that run.
	Providers Providers `json:"providers"`
	// Management configures the management cluster of `slipway up`.
	Management Management `json:"management"`
	// Manager configures the process that runs the controllers.
	Manager Manager `json:"manager"`
	// Nodes limits the containers of the Local provider and their access to the host.
	Nodes Nodes `json:"nodes"`
	// Networks limits the addresses of clusters of the Local provider.
	Networks Networks `json:"networks"`
	// ControlPlanes limits the addresses that hosted control planes listen at, and the endpoints they connect
	// to.
	ControlPlanes ControlPlanes `json:"controlPlanes"`
	// Hosts limits the hosts that the SSH provider connects to, and the endpoints of its clusters.
	Hosts Hosts `json:"hosts"`
	// Workloads limits the connections of the manager to workload clusters.
	Workloads Workloads `json:"workloads"`
	// Snapshots limits the destinations of etcd snapshots of workload clusters.
	Snapshots Snapshots `json:"snapshots"`
	// Maxima limits the cost of one object, of one namespace and of all namespaces together.
	Maxima Maxima `json:"maxima"`
}

// Provider is the name of a built-in provider that can be disabled. The setting providers.disabled contains such names.
type Provider = providerset.Name

// simulated names the simulated backend of the providers that have one.
const simulated = providerset.Simulated

// Providers selects the built-in providers that run.
type Providers struct {
	// Disabled providers do not run: their controllers, webhooks and roles are not installed, nor are their
	// CRDs unless these exist already. Default: none.
	Disabled []Provider `json:"disabled"`
}

// Management configures the management cluster of `slipway up`.
type Management struct {
	// EncryptSecrets encrypts Secrets in etcd with a key in the data directory. Default: true.
	EncryptSecrets bool `json:"encryptSecrets"`
	// Audit configures audit logging, like the field of the same name of a HostedControlPlane. Default: no
	// audit log.
	Audit *hostedv1.Audit `json:"audit"`
	// Authentication configures the trusted token issuers, like the field of the same name of a
	// HostedControlPlane. Default: only client certificates and ServiceAccount tokens authenticate.
	Authentication *hostedv1.Authentication `json:"authentication"`
	// Addresses are further addresses of this host at which the API server listens, on the port of `slipway
	// up --listen`. Default: none.
	Addresses []string `json:"addresses"`
	// Names are further host names and IP addresses for the API server's certificate. Default: none.
	Names []string `json:"names"`
	// NodeInternet gives the node of `slipway up --node` network access beyond this host, with the name
	// servers of Networks.Internet. The node is recreated when the setting changes. Default: false.
	NodeInternet bool `json:"nodeInternet"`
	// MemoryMiB is the memory limit of the process with etcd and the API server above which it collects
	// garbage regardless of the processor time. The process may exceed it. Default: 0, two fifths of the
	// memory of this host.
	MemoryMiB int64 `json:"memoryMiB"`
	// EditSecrets lets the roles "edit" and "admin" read and write Secrets, including administrator
	// kubeconfigs of clusters, as in Kubernetes. If false, users get credentials for clusters from the
	// manager. Default: true.
	EditSecrets bool `json:"editSecrets"`
}

// leastManagementMemory is the smallest accepted limit. An idle management cluster needs more.
const leastManagementMemory = 384

// Manager configures the process that runs the controllers of `slipway up`.
type Manager struct {
	// MemoryMiB is the hard memory limit. The process is killed and restarted when it exceeds it. Default: 0,
	// half of the memory of this host.
	MemoryMiB int64 `json:"memoryMiB"`
}

// leastManagerMemory is the smallest accepted limit. A manager of ten clusters needs more.
const leastManagerMemory = 256

// Nodes limits the containers of the Local provider and their access to the host. If nodes are privileged, a
// user who can create one and run Pods in it is root on this host. Therefore these limits protect against
// mistakes and against access that a node does not need; see docs/security.md.
type Nodes struct {
	// Mounts lists the folders of this host that spec.backend.container.extraMounts may refer to. Default:
	// none.
	Mounts []Mount `json:"mounts"`
	// Images lists the images that nodes may run: a name with a tag or digest, a repository for all of its
	// tags, or a prefix that ends with /*. Default: the images of `slipway image build`.
	Images []string `json:"images"`
	// CPUs, MemoryMiB and Processes are the upper limits for one node, and the values for a node without a
	// request. 0: no limit. Defaults: 0, 0, 32768.
	CPUs      int32 `json:"cpus"`
	MemoryMiB int64 `json:"memoryMiB"`
	Processes int64 `json:"processes"`
}

// Mount is a folder of the host, including all of its content.
type Mount struct {
	// Path is absolute and clean. No part of it may be a symbolic link, because it is compared with the
	// resolved path of a mount.
	Path string `json:"path"`
	// Writable also allows read-write mounts. Default: false.
	Writable bool `json:"writable,omitempty"`
	// Namespaces in which the folder may be mounted. Default: all.
	Namespaces []string `json:"namespaces,omitempty"`
}

// Networks limits the addresses of clusters of the Local provider.
type Networks struct {
	// Ranges that must contain the network of a cluster. A Docker network takes precedence over the default
	// route of this host, therefore hosts behind that route can become unreachable. Default: 172.16.0.0/12,
	// the private range that company networks use least.
	Ranges []netip.Prefix `json:"ranges"`
	// WidestPrefix is the smallest prefix length of a network. Default: 15, which is enough addresses for the
	// largest number of nodes in a network.
	WidestPrefix int `json:"widestPrefix"`
	// Internet selects the networks that may have access beyond this host.
	Internet Internet `json:"internet"`
}

// Internet selects the networks of the Local provider that may reach everything that the host reaches.
type Internet struct {
	// Allowed lets clusters request access with spec.backend.container.network.internet. Default: false.
	Allowed bool `json:"allowed"`
	// Namespaces whose clusters may request access. Default: all.
	Namespaces []string `json:"namespaces"`
	// NameServers resolve external names for Pods of such a cluster. Default: the name servers of this host,
	// without loopback addresses.
	NameServers []netip.Addr `json:"nameServers"`
}

// ControlPlanes limits the addresses that hosted control planes listen at, in addition to the gateway of
// their cluster's network, and the endpoints they connect to.
type ControlPlanes struct {
	// Addresses of this host where hosted control planes may also listen. Default: none.
	Addresses []netip.Prefix `json:"addresses"`
	// ReservedPorts are ports of these addresses that hosted control planes may not use. Default: none.
	ReservedPorts []int32 `json:"reservedPorts"`
	// Issuers are the URLs of token issuers that API servers may trust (spec.authentication of
	// HostedControlPlanes). An API server is a process of this host and connects to them and to their
	// redirects. Default: none.
	Issuers []string `json:"issuers"`
}

// Hosts limits the hosts of the SSH provider. The provider connects only to hosts for which there is an SSHHost.
type Hosts struct {
	// Ranges that must contain the addresses of SSHHosts and their jump hosts, which must be IP addresses then.
	// Default: any address or DNS name.
	Ranges []netip.Prefix `json:"ranges"`
	// Namespaces whose SSHHosts are used. Default: all.
	Namespaces []string `json:"namespaces"`
	// Endpoints are the ranges that must contain the control plane endpoint of an SSHCluster, which must be an IP
	// address then. Default: any address or DNS name.
	Endpoints []netip.Prefix `json:"endpoints"`
	// VirtualIPs are the ranges that must contain the virtual IP addresses of SSHClusters, which control plane hosts
	// add to their network interfaces. Default: none.
	VirtualIPs []VirtualIPRange `json:"virtualIPs"`
	// AtOnce is the maximum number of hosts that are worked on at the same time. At most half of them are prepared or
	// cleaned, so that the others can be checked meanwhile. Default: 40.
	AtOnce int32 `json:"atOnce"`
}

// VirtualIPRange is a range of virtual IP addresses. A file has the range alone, or an object that also names the
// namespaces whose SSHClusters may use it. No namespaces: all. [Configuration.DeniedVirtualIP] reads it.
type VirtualIPRange struct {
	Range      netip.Prefix `json:"range"`
	Namespaces []string     `json:"namespaces,omitempty"`
}

// UnmarshalJSON implements json.Unmarshaler.
func (r *VirtualIPRange) UnmarshalJSON(text []byte) error {
	if bytes.HasPrefix(text, []byte(`"`)) {
		return json.Unmarshal(text, &r.Range)
	}
	type fields VirtualIPRange
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	return d.Decode((*fields)(r))
}

// MarshalJSON implements json.Marshaler.
func (r VirtualIPRange) MarshalJSON() ([]byte, error) {
	if len(r.Namespaces) == 0 {
		return json.Marshal(r.Range)
	}
	type fields VirtualIPRange
	return json.Marshal(fields(r))
}

// Workloads limits the connections of the manager to workload clusters, whose kubeconfigs are Secrets in the
// namespaces of users.
type Workloads struct {
	// Ranges that must contain the address of a workload cluster. Default: any address.
	Ranges []netip.Prefix `json:"ranges"`
	// Proxies are the permitted values of proxy-url in a kubeconfig. Default: none.
	Proxies []string `json:"proxies"`
}

// Snapshots limits the destinations of etcd snapshots of workload clusters (EtcdSnapshotPolicies), in
// addition to the folder snapshots of the data directory.
type Snapshots struct {
	// Folders of this host that spec.destination.folder.path may refer to, including their content. Default:
	// none.
	Folders []SnapshotFolder `json:"folders"`
	// Endpoints of S3-compatible stores that spec.destination.s3.endpoint may name, with the same spelling.
	// The manager connects to them from this host. Default: none.
	Endpoints []string `json:"endpoints"`
	// NamespaceMiB limits the total size of the snapshots of one namespace in one folder of this host. 0: no
	// limit. Default: 10240.
	NamespaceMiB int64 `json:"namespaceMiB"`
}

// SnapshotFolder is a folder of the host for snapshots.
type SnapshotFolder struct {
	// Path is absolute and clean.
	Path string `json:"path"`
	// Namespaces whose snapshots may be stored in the folder. Default: all.
	Namespaces []string `json:"namespaces,omitempty"`
}

// Maxima limits the cost of one object, of one namespace and of all namespaces together. 0: no limit.
type Maxima struct {
	// Replicas limits one MachineDeployment, MachineSet or MachinePool. Default: 1000.
	Replicas int32 `json:"replicas"`
	// Nodes limits the node containers. Default: 100 in a namespace, 250 in total.
	Nodes Maximum `json:"nodes"`
	// Networks limits the Docker networks of clusters. Default: 30 in a namespace, 100 in total.
	Networks Maximum `json:"networks"`
	// NetworkAddresses limits the sum of the addresses of all these networks. Default: 524288 in a namespace,
	// half of 172.16.0.0/12.
	NetworkAddresses Maximum `json:"networkAddresses"`
	// ControlPlanes limits the processes of hosted control planes. Default: 30 in a namespace, 100 in total.
	ControlPlanes Maximum `json:"controlPlanes"`
	// SimulatedNodes and SimulatedControlPlanes limit objects that live in the manager's memory. Default:
	// 5000 and 2000 in total.
	SimulatedNodes         Maximum `json:"simulatedNodes"`
	SimulatedControlPlanes Maximum `json:"simulatedControlPlanes"`
	// SimulatedObjects limits the number of objects in one simulated workload API. Default: 50000.
	SimulatedObjects int32 `json:"simulatedObjects"`
}

// Maximum limits a count by namespace and in total. 0: no limit.
type Maximum struct {
	Namespace int32 `json:"namespace"`
	Total     int32 `json:"total"`
}

// Default returns the configuration that applies without a file. The comments of the fields, and those that
// --print-config prints (print.go), repeat these values.
func Default() Configuration {
	return Configuration{
		TypeMeta:  metav1.TypeMeta{APIVersion: apiVersion, Kind: kind},
		Providers: Providers{Disabled: []Provider{}}, Management: Management{EncryptSecrets: true, EditSecrets: true, Addresses: []string{}, Names: []string{}},
		Nodes: Nodes{Mounts: []Mount{}, Images: []string{"slipway.dev/node", "slipway.dev/node-control-plane"}, Processes: 32768},
		Networks: Networks{
			Ranges:       []netip.Prefix{netip.MustParsePrefix("172.16.0.0/12")},
			WidestPrefix: 15, Internet: Internet{Namespaces: []string{}, NameServers: []netip.Addr{}},
		},
		ControlPlanes: ControlPlanes{Addresses: []netip.Prefix{}, ReservedPorts: []int32{}, Issuers: []string{}},
		Hosts:         Hosts{Ranges: []netip.Prefix{}, Namespaces: []string{}, Endpoints: []netip.Prefix{}, VirtualIPs: []VirtualIPRange{}, AtOnce: 40},
		Workloads:     Workloads{Ranges: []netip.Prefix{}, Proxies: []string{}},
		Snapshots:     Snapshots{Folders: []SnapshotFolder{}, Endpoints: []string{}, NamespaceMiB: 10240},
		Maxima: Maxima{
			Replicas: 1000, Nodes: Maximum{Namespace: 100, Total: 250}, Networks: Maximum{Namespace: 30, Total: 100},
			NetworkAddresses: Maximum{Namespace: 1 << 19},
			ControlPlanes:    Maximum{Namespace: 30, Total: 100}, SimulatedNodes: Maximum{Total: 5000},
			SimulatedControlPlanes: Maximum{Total: 2000}, SimulatedObjects: 50000,
		},
	}
}

// Sets returns the enabled providers. The commands `slipway up` and `slipway manager` run the controllers of these
// providers.
func (c Configuration) Sets() []providerset.Set { return providerset.Without(c.Providers.Disabled...) }

// Disable disables further providers. The commands `slipway up` and `slipway manager` call it for their flag.
func (c *Configuration) Disable(names ...Provider) {
	all := append(slices.Clone(c.Providers.Disabled), names...)
	slices.Sort(all)
	c.Providers.Disabled = slices.Compact(all)
}

// Runs reports whether the provider is enabled. The manager and its flags depend on it.
func (c Configuration) Runs(p Provider) bool { return !slices.Contains(c.Providers.Disabled, p) }

// DeniedSimulated returns why an object may not use the simulated backend, or an empty string if it may. The simulated
// backends of packages hosted and local report it in their capabilities.
func (c Configuration) DeniedSimulated() string {
	if c.Runs(simulated) {
		return ""
	}
	return "The simulated backend is disabled: choose another one, or ask the operator to remove simulated from providers.disabled " + settingLocation
}
