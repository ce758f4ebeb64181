package v1alpha1

// HostedControlPlaneSettings are the settings common to a HostedControlPlane and its template.
type HostedControlPlaneSettings struct {
	// backend selects the implementation of the control plane. Defaults to a process on this host. Cannot be changed.
	// +optional
	// +kubebuilder:default={process: {}}
	Backend Backend `json:"backend,omitempty,omitzero"`

	// addons are the components that are installed and updated in the workload cluster.
	// +optional
	// +kubebuilder:default={}
	Addons Addons `json:"addons,omitempty,omitzero"`

	// apiServer customizes kube-apiserver.
	// +optional
	APIServer Component `json:"apiServer,omitempty,omitzero"`

	// controllerManager customizes kube-controller-manager.
	// +optional
	ControllerManager Component `json:"controllerManager,omitempty,omitzero"`

	// scheduler customizes kube-scheduler.
	// +optional
	Scheduler Component `json:"scheduler,omitempty,omitzero"`

	// etcd customizes etcd.
	// +optional
	Etcd Component `json:"etcd,omitempty,omitzero"`

	Security `json:",inline"`

	// certificateValidityDays is the validity in days of the certificates of the control plane's components, which are
	// renewed well before they expire. It does not apply to the certificate authorities. Defaults to 365.
	// +optional
	// +kubebuilder:default=365
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=3650
	CertificateValidityDays int32 `json:"certificateValidityDays,omitempty"`

	// certificateNames are additional host names and IP addresses of the API server for its certificate, for example of
	// a load balancer or of a host that forwards to it. A change restarts the control plane in place. A simulated
	// control plane ignores it.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=253
	// +kubebuilder:validation:items:Pattern=`^((\*\.)?[a-z0-9]([-a-z0-9.]*[a-z0-9])?|[0-9A-Fa-f:.]+)$`
	CertificateNames []string `json:"certificateNames,omitempty"`
}

// Backend selects the implementation of a control plane. Exactly one member must be set.
// +kubebuilder:validation:ExactlyOneOf=process;simulated
type Backend struct {
	// process runs etcd, kube-apiserver, kube-controller-manager and kube-scheduler in one process: on this host, or in
	// a Pod with a volume if the manager runs in a Pod.
	// +optional
	Process *ProcessBackend `json:"process,omitempty"`

	// simulated runs no components: an API server within Slipway itself, with its objects in memory and in one small
	// file, serves the API of the cluster. Nodes and Pods are objects without actual machines and containers. It
	// reports any version, and ignores addons, apiServer, controllerManager, scheduler, etcd, audit, encryption,
	// authentication and podSecurity.
	// +optional
	Simulated *SimulatedBackend `json:"simulated,omitempty"`
}

// Names of backends, equal to the members of spec.backend.
const (
	BackendProcess   = "process"
	BackendSimulated = "simulated"
)

// Name returns the name of the selected backend.
func (b Backend) Name() string {
	if b.Simulated != nil {
		return BackendSimulated
	}
	return BackendProcess
}

// ProcessBackend configures the process backend.
type ProcessBackend struct{}

// SimulatedBackend configures the simulated backend.
type SimulatedBackend struct{}

// InitializedAnnotation marks a HostedControlPlane that was initialized and has data on its host. Its controller sets
// the annotation, because a restore may lose the status: a control plane with the annotation is not started empty if
// its data is missing, and a simulated one reports that it is empty.
const InitializedAnnotation = "controlplane.slipway.dev/initialized"

// RestoreAnnotation on a HostedControlPlane requests the restore of an etcd snapshot. Its value is JSON with an id (the
// time as 20261125T131500Z), policy and snapshot, and if necessary identitySecret and otherCluster. The controller
// removes it when the API server serves the restored data.
const RestoreAnnotation = "controlplane.slipway.dev/restore"

// QuiesceAnnotation on a HostedControlPlane stops its control plane partially or completely, even if the object is
// paused, for example to move its data to another host. Its value is one of the modes below, a slash, and an id of at
// most 64 characters that identifies the request. When the request is fulfilled, status.quiesced has the same value.
// Without the annotation the control plane runs normally.
const QuiesceAnnotation = "controlplane.slipway.dev/quiesce"

// Modes of QuiesceAnnotation.
const (
	// QuiesceEtcd runs only etcd: nothing writes to it any more, and a snapshot can be taken.
	QuiesceEtcd = "Etcd"
	// QuiesceStopped runs nothing. The data is retained.
	QuiesceStopped = "Stopped"
	// QuiesceLoopback runs the control plane with the snapshot in RestoreAnnotation, with an API server that is only
	// reachable on this host. Until RestoreAnnotation is set, status.quiesced is QuiesceAwaitingData, a slash and the
	// id, if nothing else prevents the start.
	QuiesceLoopback = "Loopback"
	// QuiesceAwaitingData means that only the data is missing.
	QuiesceAwaitingData = "AwaitingData"
)

// RecoverAnnotation on a KubeadmControlPlane requests the recovery from the loss of the etcd quorum. Its value is JSON
// with an id (the time as 20261125T131500Z) and survivor, the Machine whose member is used to rebuild the etcd cluster;
// without a survivor, the members are only surveyed. The controller stores its journal in the annotation, and removes
// it when the recovery is done.
const RecoverAnnotation = "controlplane.slipway.dev/recover"

// Annotations on an infrastructure machine of a control plane whose etcd has no quorum, so that its API is not
// available. An infrastructure provider that supports them executes the requests of the control plane on the node.
const (
	// EtcdOrderAnnotation is the request of the control plane: JSON with the id of the request, and step: Survey,
	// Rebuild, Stage (with the snapshot) or Restore.
	EtcdOrderAnnotation = "controlplane.slipway.dev/etcd-order"

	// EtcdReportAnnotation is the response of the infrastructure provider: JSON with the same id and step, problem if
	// the step failed, and after a survey member with leader, revision and index.
	EtcdReportAnnotation = "controlplane.slipway.dev/etcd-report"
)

// RecoveredCondition of a KubeadmControlPlane reports the progress of the recovery from the loss of the etcd quorum. It
// does not exist before the first recovery.
const RecoveredCondition = "Recovered"

// Annotations on a HostedControlPlane that inject faults into a simulated control plane. Durations have a unit, for
// example 500ms, 30s or 5m. An invalid value has no effect, and is reported in the condition Reconciled.
const (
	// APIDownAnnotation makes the API server unreachable for this duration, starting when the value is first observed
	// (and again after a restart of Slipway). With the value "always" it is unreachable until the annotation is
	// removed.
	APIDownAnnotation = "simulated.controlplane.slipway.dev/api-down"

	// APISlowAnnotation delays each response of the API server by this duration.
	APISlowAnnotation = "simulated.controlplane.slipway.dev/api-slow"

	// APIErrorsAnnotation makes the API server return this HTTP status, from 400 to 599, for every request. Established
	// watches continue.
	APIErrorsAnnotation = "simulated.controlplane.slipway.dev/api-errors"
)

// Component customizes one component of the control plane.
// +kubebuilder:validation:MinProperties=1
type Component struct {
	// extraArgs are flags for the component, which extend or override the flags set by Slipway. Because the component
	// is a process on the host, flags for files, sockets, URLs or addresses are rejected, and the values of others are
	// limited: `slipway docs hosted-control-plane` lists the allowed flags.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +listMapKey=value
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=100
	ExtraArgs []Arg `json:"extraArgs,omitempty"`
}

// Flags returns the flags in command-line notation.
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

// Arg is one flag of a component. A flag that may be repeated is listed once for each value.
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

// DefaultImageRepository is the default of spec.addons.imageRepository. Its images are included in the node image.
const DefaultImageRepository = "slipway.dev"

// Addons are the parts of a workload cluster that run on its nodes.
type Addons struct {
	// imageRepository is the prefix of the image names of the add-ons. Defaults to slipway.dev, whose images are
	// included in the node image; they are not pulled from a registry.
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

// Addon configures an optional add-on.
type Addon struct {
	// disabled disables the add-on; an add-on that is already installed is not removed. Defaults to false.
	// +optional
	Disabled bool `json:"disabled,omitempty"`
}
