package v1alpha1

// HostedControlPlaneSettings are the settings that a HostedControlPlane and its template have in common.
type HostedControlPlaneSettings struct {
	// backend chooses what the control plane is made of. Defaults to a process on this host. Cannot be changed.
	// +optional
	// +kubebuilder:default={process: {}}
	Backend Backend `json:"backend,omitempty,omitzero"`

	// addons are what is installed in the workload cluster and kept as it is here.
	// +optional
	// +kubebuilder:default={}
	Addons Addons `json:"addons,omitempty,omitzero"`

	// apiServer changes how kube-apiserver is run.
	// +optional
	APIServer Component `json:"apiServer,omitempty,omitzero"`

	// controllerManager changes how kube-controller-manager is run.
	// +optional
	ControllerManager Component `json:"controllerManager,omitempty,omitzero"`

	// scheduler changes how kube-scheduler is run.
	// +optional
	Scheduler Component `json:"scheduler,omitempty,omitzero"`

	// etcd changes how etcd is run.
	// +optional
	Etcd Component `json:"etcd,omitempty,omitzero"`

	Security `json:",inline"`

	// certificateValidityDays is how long, in days, the certificates of the control plane's components are valid;
	// they are renewed well before. It does not concern the certificate authorities. Defaults to 365.
	// +optional
	// +kubebuilder:default=365
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=3650
	CertificateValidityDays int32 `json:"certificateValidityDays,omitempty"`

	// certificateNames are further host names and IP addresses by which clients reach the API server, for its certificate: those of a load
	// balancer or of a host that forwards to it. A change restarts the control plane in place. A simulated one takes no notice.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=253
	// +kubebuilder:validation:items:Pattern=`^((\*\.)?[a-z0-9]([-a-z0-9.]*[a-z0-9])?|[0-9A-Fa-f:.]+)$`
	CertificateNames []string `json:"certificateNames,omitempty"`
}

// Backend chooses what a control plane is made of. Exactly one member is set.
// +kubebuilder:validation:ExactlyOneOf=process;simulated
type Backend struct {
	// process runs etcd, kube-apiserver, kube-controller-manager and kube-scheduler in one process: on this host, or in a
	// Pod with a volume where the manager runs in one.
	// +optional
	Process *ProcessBackend `json:"process,omitempty"`

	// simulated runs nothing: an API server within Slipway itself, with its objects in memory and in one small file,
	// answers for the cluster. Nodes and Pods are objects with nothing behind them. It says that it is of any version,
	// and takes no notice of addons, apiServer, controllerManager, scheduler, etcd, audit, encryption, authentication and
	// podSecurity.
	// +optional
	Simulated *SimulatedBackend `json:"simulated,omitempty"`
}

// Names of backends, as the members of spec.backend are called.
const (
	BackendProcess   = "process"
	BackendSimulated = "simulated"
)

// Name returns which backend is chosen.
func (b Backend) Name() string {
	if b.Simulated != nil {
		return BackendSimulated
	}
	return BackendProcess
}

// ProcessBackend is what the process backend needs to know.
type ProcessBackend struct{}

// SimulatedBackend is what the simulated backend needs to know.
type SimulatedBackend struct{}

// InitializedAnnotation on a HostedControlPlane says that it was initialized and has data on its host. Its controller sets it,
// because a restore may lose the status: without the data it is not started
// empty, and a simulated one says that it is.
const InitializedAnnotation = "controlplane.slipway.dev/initialized"

// RestoreAnnotation on a HostedControlPlane asks for a snapshot of its etcd to be restored. Its value is JSON with an id (the time
// as 20261125T131500Z), policy and snapshot, and where they are needed identitySecret and otherCluster.
// The controller removes it when the API server answers with what was restored.
const RestoreAnnotation = "controlplane.slipway.dev/restore"

// QuiesceAnnotation on a HostedControlPlane keeps its control plane from its work, also while it is paused, as when its data moves to
// another host. Its value is one of the modes below, a slash, and an id of at most 64 characters that tells it from other requests.
// When it is fulfilled, status.quiesced has the same value. Without the annotation the control plane runs as usual.
const QuiesceAnnotation = "controlplane.slipway.dev/quiesce"

// Modes of QuiesceAnnotation.
const (
	// QuiesceEtcd runs etcd alone: nothing writes to it any more, and a snapshot of it can be taken.
	QuiesceEtcd = "Etcd"
	// QuiesceStopped runs nothing. The data stays.
	QuiesceStopped = "Stopped"
	// QuiesceLoopback runs the control plane with what RestoreAnnotation names, and lets the API server answer on this host alone. Until
	// that annotation is there, status.quiesced is QuiesceAwaitingData, a slash and the id, where nothing else keeps it from starting.
	QuiesceLoopback = "Loopback"
	// QuiesceAwaitingData tells that only data is missing.
	QuiesceAwaitingData = "AwaitingData"
)

// RecoverAnnotation on a KubeadmControlPlane asks it to recover from the loss of the quorum of its etcd. Its value is JSON with an id
// (the time as 20261125T131500Z) and survivor, the Machine whose member becomes the whole cluster; without a survivor, members
// are only surveyed. The controller keeps its journal in it, and removes it when it is done.
const RecoverAnnotation = "controlplane.slipway.dev/recover"

// Annotations on an infrastructure machine of a control plane whose etcd has no quorum, so that its API does not answer. An
// infrastructure provider that knows them does on the node what the control plane asks for.
const (
	// EtcdOrderAnnotation is what the control plane asks for: JSON with the id of the request, and step, which is Survey, Rebuild,
	// Stage (with the snapshot that is meant) or Restore.
	EtcdOrderAnnotation = "controlplane.slipway.dev/etcd-order"

	// EtcdReportAnnotation is the answer of the infrastructure provider: JSON with the same id and step, problem where it could not be
	// done, and after a survey member with leader, revision and index.
	EtcdReportAnnotation = "controlplane.slipway.dev/etcd-report"
)

// RecoveredCondition of a KubeadmControlPlane tells how far the recovery from the loss of the quorum of its etcd is. There is none
// before the first.
const RecoveredCondition = "Recovered"

// Annotations on a HostedControlPlane that make something go wrong with a simulated control plane, on purpose.
// Durations have a unit, for example 500ms, 30s or 5m; a value that cannot be read asks for nothing, and the condition
// Reconciled says so.
const (
	// APIDownAnnotation makes the API server unreachable for this long, counted from when the value is first seen (and
	// again after a restart of Slipway). The value "always" has no end but the annotation's removal.
	APIDownAnnotation = "simulated.controlplane.slipway.dev/api-down"

	// APISlowAnnotation delays each answer of the API server by this long.
	APISlowAnnotation = "simulated.controlplane.slipway.dev/api-slow"

	// APIErrorsAnnotation makes the API server answer every request with this HTTP status, from 400 to 599. Watches that
	// are open go on.
	APIErrorsAnnotation = "simulated.controlplane.slipway.dev/api-errors"
)

// Component changes how one component of the control plane is run.
// +kubebuilder:validation:MinProperties=1
type Component struct {
	// extraArgs are flags given to the component in addition to those that Slipway sets, or in their place. The component
	// is a process of the host, so that flags which name files, sockets, URLs or addresses are refused, and the values of
	// others are bounded: docs/hosted-control-plane.md lists what is allowed.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +listMapKey=value
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=100
	ExtraArgs []Arg `json:"extraArgs,omitempty"`
}

// Flags are the flags as on a command line.
func (c Component) Flags() []string {
	var out []string
	for _, a := range c.ExtraArgs {
		value := ""
		if a.Value != nil {
			value = *a.Value
		}
		out = append(out, "--"+a.Name+"="+value)
	}
	return out
}

// Arg is one flag of a component. A flag that may be repeated appears once for each value.
type Arg struct {
	// name is the flag's name without leading dashes, for example event-ttl.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	// +kubebuilder:validation:Pattern=`^[a-zA-Z0-9][-a-zA-Z0-9]*$`
	Name string `json:"name,omitempty"`

	// value is the flag's value; it may be empty.
	// +required
	// +kubebuilder:validation:MaxLength=1024
	Value *string `json:"value,omitempty"`
}

// DefaultImageRepository is the default of spec.addons.imageRepository: images that the node image brings along.
const DefaultImageRepository = "slipway.dev"

// Addons are the parts of a workload cluster that run on its nodes.
type Addons struct {
	// imageRepository is the first part of the names of the add-ons' images. Defaults to slipway.dev, whose images
	// the node image brings along; no registry of that name is asked.
	// +optional
	// +kubebuilder:default=slipway.dev
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	ImageRepository string `json:"imageRepository,omitempty"`

	// coreDNS is the cluster's DNS server.
	// +optional
	CoreDNS Addon `json:"coreDNS,omitempty,omitzero"`

	// kubeProxy programs Services on each node.
	// +optional
	KubeProxy Addon `json:"kubeProxy,omitempty,omitzero"`
}

// Addon is one add-on that can be left out.
type Addon struct {
	// disabled leaves the add-on out; one that was installed before is not removed. Defaults to false.
	// +optional
	Disabled bool `json:"disabled,omitempty"`
}
