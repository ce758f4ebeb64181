package policy

import (
	"net/netip"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hostedv1 "github.com/slipwayhq/slipway/api/controlplane/v1alpha1"
	"github.com/slipwayhq/slipway/internal/providerset"
)

// APIVersion and Kind of the configuration file.
const (
	APIVersion = "config.slipway.dev/v1alpha1"
	Kind       = "Configuration"
)

// Configuration is the operator's file. [Default] is what holds where it says nothing.
type Configuration struct {
	metav1.TypeMeta `json:",inline"`

	// Providers says which of the built-in providers run.
	Providers Providers `json:"providers"`
	// Management is how the management cluster of `slipway up` is kept.
	Management Management `json:"management"`
	// Manager is about the process that runs the controllers.
	Manager Manager `json:"manager"`
	// Nodes is what the containers of the Local provider may be and reach.
	Nodes Nodes `json:"nodes"`
	// Networks is where clusters of the Local provider may take their addresses.
	Networks Networks `json:"networks"`
	// ControlPlanes is where hosted control planes may listen, and what they may connect to.
	ControlPlanes ControlPlanes `json:"controlPlanes"`
	// Workloads is how the manager connects to workload clusters.
	Workloads Workloads `json:"workloads"`
	// Snapshots is where snapshots of the etcd of workload clusters may be stored.
	Snapshots Snapshots `json:"snapshots"`
	// Maxima bound what one object, one namespace and all of them can cost.
	Maxima Maxima `json:"maxima"`
}

// Provider is the name of a built-in provider that can be switched off.
type Provider = providerset.Name

// Simulated is the simulated backend of the providers that have one.
const Simulated = providerset.Simulated

// Providers says which of the built-in providers run.
type Providers struct {
	// Disabled providers do not run: no controllers, webhooks or roles of theirs, and no CRDs where there are none yet.
	// Default: none.
	Disabled []Provider `json:"disabled"`
}

// Management is how the management cluster of `slipway up` is kept.
type Management struct {
	// EncryptSecrets encrypts Secrets in its etcd data, with a key in the data directory. Default: true.
	EncryptSecrets bool `json:"encryptSecrets"`
	// Audit records who did what and when, as the field of that name does for a HostedControlPlane. Default: nothing is
	// recorded.
	Audit *hostedv1.Audit `json:"audit"`
	// Authentication says whose tokens identify users, as the field of that name does for a HostedControlPlane. Default: client
	// certificates and ServiceAccounts alone.
	Authentication *hostedv1.Authentication `json:"authentication"`
	// Addresses are those of this host, besides that of `slipway up --listen`, at which its API server answers, at the same port. Default: none.
	Addresses []string `json:"addresses"`
	// Names are further host names and IP addresses by which clients reach it, for its certificate. Default: none.
	Names []string `json:"names"`
	// NodeInternet gives the node of `slipway up --node` a way out of this host, with the name servers of Networks.Internet.
	// The node is created again when it changes. Default: false.
	NodeInternet bool `json:"nodeInternet"`
	// MemoryMiB is the memory that the process of etcd and the API server uses before it collects garbage without regard to the
	// processor time that this takes. It may use more. Default: 0, two fifths of the memory of this host.
	MemoryMiB int64 `json:"memoryMiB"`
	// EditSecrets lets the roles "edit" and "admin" read and write Secrets, those with the administrator's kubeconfigs of clusters among
	// them, as Kubernetes does. Without it users get credentials of clusters from the manager. Default: true.
	EditSecrets bool `json:"editSecrets"`
}

// leastManagementMemory is less than what an idle management cluster needs.
const leastManagementMemory = 384

// Manager is about the process that runs the controllers of `slipway up`.
type Manager struct {
	// MemoryMiB is the most memory that it may use: with more, it is killed and started again. Default: 0, half of the
	// memory of this host.
	MemoryMiB int64 `json:"memoryMiB"`
}

// leastManagerMemory is less than what a manager needs for ten clusters.
const leastManagerMemory = 256

// Nodes is what the containers of the Local provider may be and reach. Whoever may create one and run Pods in it is
// root on this host wherever nodes are privileged, so that these limits guard against mistakes and against reaching
// further than a node does; see docs/security.md.
type Nodes struct {
	// Mounts are the folders of this host that spec.backend.container.extraMounts may name. Default: none.
	Mounts []Mount `json:"mounts"`
	// Images that nodes may run: a name with a tag or digest, a repository for all of its tags, or a prefix that ends
	// with /*. Default: what `slipway image build` makes.
	Images []string `json:"images"`
	// CPUs, MemoryMiB and Processes are the most that one node may use, and what a node gets that asks for nothing.
	// 0: no limit. Defaults: 0, 0, 32768.
	CPUs      int32 `json:"cpus"`
	MemoryMiB int64 `json:"memoryMiB"`
	Processes int64 `json:"processes"`
}

// Mount is a folder of the host with all that is in it.
type Mount struct {
	// Path is absolute and clean, and no part of it is a symbolic link: what is mounted is compared with it as it leads.
	Path string `json:"path"`
	// Writable lets nodes mount it for writing, too. Default: false.
	Writable bool `json:"writable,omitempty"`
	// Namespaces that may use it. Default: all.
	Namespaces []string `json:"namespaces,omitempty"`
}

// Networks is where clusters of the Local provider may take their addresses.
type Networks struct {
	// Ranges that a network has to lie in. A network of Docker takes precedence over the default route of this host: what
	// lies behind that route in these ranges can be cut off. Default: 172.16.0.0/12, which the networks of companies use least.
	Ranges []netip.Prefix `json:"ranges"`
	// WidestPrefix is the length of the widest prefix that one network may have. Default: 15, which has room for the most
	// nodes that one network can have.
	WidestPrefix int `json:"widestPrefix"`
	// Internet is which networks may have a way out of this host.
	Internet Internet `json:"internet"`
}

// Internet is which networks of the Local provider may have a way out of this host, to everything that the host reaches.
type Internet struct {
	// Allowed lets clusters ask for it in spec.backend.container.network.internet. Default: false.
	Allowed bool `json:"allowed"`
	// Namespaces whose clusters may. Default: all.
	Namespaces []string `json:"namespaces"`
	// NameServers that Pods of such a cluster use for names outside of it. Default: those that this host uses, without its
	// loopback addresses.
	NameServers []netip.Addr `json:"nameServers"`
}

// ControlPlanes is where hosted control planes may listen, at the gateway of their cluster's own network and here, and what
// they may connect to.
type ControlPlanes struct {
	// Addresses of this host where hosted control planes may listen besides. Default: none.
	Addresses []netip.Prefix `json:"addresses"`
	// ReservedPorts are those where none may listen at these addresses. Default: none.
	ReservedPorts []int32 `json:"reservedPorts"`
	// Issuers are the URLs of those whose tokens API servers may accept (spec.authentication of HostedControlPlanes). An API
	// server is a process of this host and connects to them, and to where they send it. Default: none.
	Issuers []string `json:"issuers"`
}

// Workloads is how the manager connects to workload clusters, whose kubeconfigs are Secrets of the namespaces.
type Workloads struct {
	// Ranges that the address of a workload cluster has to lie in. Default: any.
	Ranges []netip.Prefix `json:"ranges"`
	// Proxies are the values of proxy-url that a kubeconfig may have. Default: none.
	Proxies []string `json:"proxies"`
}

// Snapshots is where snapshots of the etcd of workload clusters (EtcdSnapshotPolicies) may be stored, besides the folder
// snapshots of the data directory.
type Snapshots struct {
	// Folders of this host that spec.destination.folder.path may name, with all that is in them. Default: none.
	Folders []SnapshotFolder `json:"folders"`
	// Endpoints of S3-compatible stores that spec.destination.s3.endpoint may name, as they stand there. The manager connects to
	// them from this host. Default: none.
	Endpoints []string `json:"endpoints"`
	// NamespaceMiB is how much the snapshots of one namespace may have in one folder of this host. 0: no limit. Default: 10240.
	NamespaceMiB int64 `json:"namespaceMiB"`
}

// SnapshotFolder is a folder of the host for snapshots.
type SnapshotFolder struct {
	// Path is absolute and clean.
	Path string `json:"path"`
	// Namespaces that may use it. Default: all.
	Namespaces []string `json:"namespaces,omitempty"`
}

// Maxima bound what one object, one namespace and all of them can cost. 0: no limit.
type Maxima struct {
	// Replicas of one MachineDeployment, MachineSet or MachinePool. Default: 1000.
	Replicas int32 `json:"replicas"`
	// Nodes are containers. Default: 100 in a namespace, 250 in all.
	Nodes Maximum `json:"nodes"`
	// Networks are Docker networks of clusters. Default: 30 in a namespace, 100 in all.
	Networks Maximum `json:"networks"`
	// NetworkAddresses are the addresses of all of these networks together. Default: 524288 in a namespace, half of
	// 172.16.0.0/12.
	NetworkAddresses Maximum `json:"networkAddresses"`
	// ControlPlanes are processes of hosted control planes. Default: 30 in a namespace, 100 in all.
	ControlPlanes Maximum `json:"controlPlanes"`
	// SimulatedNodes and SimulatedControlPlanes live in the manager's memory. Default: 5000 and 2000 in all.
	SimulatedNodes         Maximum `json:"simulatedNodes"`
	SimulatedControlPlanes Maximum `json:"simulatedControlPlanes"`
	// SimulatedObjects bounds what one simulated workload API stores. Default: 50000.
	SimulatedObjects int32 `json:"simulatedObjects"`
}

// Maximum bounds a number by namespace and in all. 0: no limit.
type Maximum struct {
	Namespace int32 `json:"namespace"`
	Total     int32 `json:"total"`
}

// Default is what holds where the operator says nothing.
func Default() Configuration {
	return Configuration{
		TypeMeta:  metav1.TypeMeta{APIVersion: APIVersion, Kind: Kind},
		Providers: Providers{Disabled: []Provider{}}, Management: Management{EncryptSecrets: true, EditSecrets: true, Addresses: []string{}, Names: []string{}},
		Nodes: Nodes{Mounts: []Mount{}, Images: []string{"slipway.dev/node", "slipway.dev/node-control-plane"}, Processes: 32768},
		Networks: Networks{
			Ranges:       []netip.Prefix{netip.MustParsePrefix("172.16.0.0/12")},
			WidestPrefix: 15, Internet: Internet{Namespaces: []string{}, NameServers: []netip.Addr{}},
		},
		ControlPlanes: ControlPlanes{Addresses: []netip.Prefix{}, ReservedPorts: []int32{}, Issuers: []string{}},
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

// Sets returns the providers that are to run.
func (c Configuration) Sets() []providerset.Set { return providerset.Without(c.Providers.Disabled...) }

// Disable switches providers off, besides those that are.
func (c *Configuration) Disable(names ...Provider) {
	all := append(slices.Clone(c.Providers.Disabled), names...)
	slices.Sort(all)
	c.Providers.Disabled = slices.Compact(all)
}

// Runs reports whether the provider is to run.
func (c Configuration) Runs(p Provider) bool { return !slices.Contains(c.Providers.Disabled, p) }

// DeniedSimulated returns why an object may not be of the simulated backend, empty if it may.
func (c Configuration) DeniedSimulated() string {
	if c.Runs(Simulated) {
		return ""
	}
	return "The simulated backend is switched off: choose another one, or ask the operator to take simulated out of providers.disabled " + where
}
