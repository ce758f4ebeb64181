package machine

import (
	"context"
	"fmt"
	"time"

	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	controlplanev1 "github.com/slipwayhq/slipway/api/controlplane/v1alpha1"
	infrav1 "github.com/slipwayhq/slipway/api/infrastructure/v1alpha1"
	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/infrastructure"
	"github.com/slipwayhq/slipway/internal/local/backend"
	"github.com/slipwayhq/slipway/internal/policy"
	"github.com/slipwayhq/slipway/internal/reconciler"
	versions "github.com/slipwayhq/slipway/internal/version"
)

// poolAnnotation on a LocalMachine names the LocalMachinePool that created it. The controller owner reference cannot
// serve this purpose, because it is transferred to the Machine.
const poolAnnotation = backend.PoolAnnotation

// snapshot is the input of [decide] and [report]: the LocalMachine, the objects around it, and the state of its
// machine. It must not contain bootstrap data.
type snapshot struct {
	Object *infrav1.LocalMachine
	// Machine that owns the object. Nil if there is none (yet).
	Machine *clusterv1.Machine
	// Pool is the MachinePool of a machine that was created for one. Nil for others.
	Pool *clusterv1.MachinePool
	// Cluster and Network (the LocalCluster) of the machine. Nil if they do not exist (yet).
	Cluster *clusterv1.Cluster
	Network *infrav1.LocalCluster
	// HostedControlPlane is the hosted control plane of the Cluster. Nil if there is none, or one of another kind.
	HostedControlPlane *controlplanev1.HostedControlPlane
	// Name of the machine, even if it does not exist yet. Empty if the object cannot have the ID in spec.providerID.
	Name string
	// Policy is the operator's configuration.
	Policy policy.Configuration
	// Capabilities are the properties of the machine that are known in advance.
	Capabilities backend.Capabilities
	// HostMachine is the observed machine.
	HostMachine backend.Machine
	// Fault is the error of the backend. Nil if the backend could be read.
	Fault *fault.Fault
	// Progress of the bootstrap. Nil until it has been read.
	Progress *backend.Progress
	// Kubelet is the state of the kubelet. Nil unless it has been read.
	Kubelet *backend.KubeletState
	// Etcd is the result of an order for the etcd member. Nil until it has been read.
	Etcd *etcdResult
	// Quota is the number of existing machines and the resolved mounts for a new machine. Nil until it has been read.
	Quota *backend.Quota
	Now   time.Time
}

// observe reads the snapshot at the start of each reconciliation; package reconciler calls it. It neither writes nor
// changes the host. A fault of the backend is part of the snapshot.
func (c *controller) observe(ctx context.Context, o *infrav1.LocalMachine) (snapshot, error) {
	s := snapshot{Object: o, Now: c.now(), Name: backend.ResolveMachineName(c.Instance, o.Spec.ProviderID, client.ObjectKeyFromObject(o)), Policy: c.Policy}
	if err := c.readOwners(ctx, &s); err != nil {
		return s, err
	}
	if s.Name == "" { // do not use an invalid name in a lookup
		return s, nil
	}
	b, err := c.backendOf(s)
	if err == nil {
		s.Capabilities = b.Machines.Capabilities(s.request())
		if err := c.readPlane(ctx, &s); err != nil {
			return s, err
		}
		s.HostMachine, err = b.Machines.Inspect(ctx, s.ref())
	}
	if s.Fault = fault.As(err); s.Fault != nil {
		err = nil
	}
	return s, err
}

func (c *controller) backendOf(s snapshot) (backend.Backend, error) {
	return c.Backends.Choose(s.Object.Spec.Backend.Name(), s.Object.Annotations)
}

// request returns the requested machine.
func (s snapshot) request() backend.MachineRequest {
	return backend.MachineRequest{Object: s.Object, Name: s.Name, Version: s.version(), ControlPlane: s.controlPlane(), Policy: s.Policy}
}

// ref returns the reference to the machine: its name, and its ID once it has been observed.
func (s snapshot) ref() backend.Ref {
	return backend.Ref{Object: client.ObjectKeyFromObject(s.Object), Name: s.Name, ID: s.HostMachine.ID, Cluster: s.clusterName(), ControlPlane: s.controlPlane()}
}

func (s snapshot) clusterName() string { return s.Object.Labels[clusterv1.ClusterNameLabel] }

func (c *controller) readOwners(ctx context.Context, s *snapshot) error {
	o := s.Object
	var err error
	if s.Machine, err = infrastructure.ReadObject(ctx, c.client, o.Namespace, infrastructure.OwnerName(o, "Machine"), &clusterv1.Machine{}); err != nil {
		return err
	}
	if s.Cluster, err = infrastructure.ReadObject(ctx, c.client, o.Namespace, s.clusterName(), &clusterv1.Cluster{}); err != nil {
		return err
	}
	if s.Cluster != nil {
		ref := s.Cluster.Spec.InfrastructureRef
		if ref.Kind == "LocalCluster" && ref.APIGroup == infrav1.GroupVersion.Group {
			if s.Network, err = infrastructure.ReadObject(ctx, c.client, o.Namespace, ref.Name, &infrav1.LocalCluster{}); err != nil {
				return err
			}
		}
	}
	local, err := infrastructure.ReadObject(ctx, c.client, o.Namespace, o.Annotations[poolAnnotation], &infrav1.LocalMachinePool{})
	if err != nil || local == nil {
		return err
	}
	s.Pool, err = infrastructure.ReadObject(ctx, c.client, o.Namespace, infrastructure.OwnerName(local, "MachinePool"), &clusterv1.MachinePool{})
	return err
}

// readPlane reads the hosted control plane for the version check of nodes that have yet to be created from an image.
func (c *controller) readPlane(ctx context.Context, s *snapshot) (err error) {
	if s.Cluster == nil || s.Capabilities.Image == "" || s.provisioned() {
		return nil
	}
	ref := s.Cluster.Spec.ControlPlaneRef
	if ref.Kind == "HostedControlPlane" && ref.APIGroup == controlplanev1.GroupVersion.Group {
		s.HostedControlPlane, err = infrastructure.ReadObject(ctx, c.client, s.Object.Namespace, ref.Name, &controlplanev1.HostedControlPlane{})
	}
	return err
}

// readRequested reads the state that Decide requests. Package reconciler calls it for each read that [decide] requests.
func (c *controller) readRequested(ctx context.Context, s snapshot, q reconciler.ReadRequest) (snapshot, error) {
	b, err := c.backendOf(s)
	if err != nil {
		return s, err
	}
	if _, ok := q.(checkQuota); ok {
		return readQuota(ctx, b.Machines, s)
	}
	if _, ok := q.(readKubelet); ok {
		return readKubeletState(ctx, b.Kubelets, s), nil
	}
	if q, ok := q.(readEtcd); ok {
		return c.readEtcdResult(ctx, b.EtcdRecovery, s, q.Order)
	}
	return c.readBootstrapProgress(ctx, b.Scripts, s)
}

// readBootstrapProgress reads the progress of the bootstrap.
func (c *controller) readBootstrapProgress(ctx context.Context, scripts backend.Scripts, s snapshot) (snapshot, error) {
	p, err := scripts.Progress(ctx, s.ref())
	if err == nil {
		p, err = c.maskSecrets(ctx, s, p)
	}
	if err == nil && (p.Phase == backend.Succeeded || p.Phase == backend.Failed) {
		p.Skipped, err = c.skipped(ctx, s)
	}
	s.Progress = &p
	f := fault.As(err)
	switch {
	case f == nil:
	case f.Kind == fault.Unreachable, f.Kind == fault.Conflict:
		// The machine has stopped, or the backend is unreachable, since it was inspected: an event will follow.
		s.Progress, err = &backend.Progress{Phase: backend.InProgress}, nil
	default:
		s.Fault, err = f, nil
	}
	return s, err
}

// readQuota reads the number of existing machines and the resolved mounts for a new machine.
func readQuota(ctx context.Context, machines backend.Machines, s snapshot) (snapshot, error) {
	want := desiredMachine(s)
	want.Mounts = s.Capabilities.Mounts
	room, err := machines.CheckQuota(ctx, want)
	if s.Fault = fault.As(err); s.Fault != nil {
		return s, nil
	}
	s.Quota = &room
	return s, err
}

// provisioned reports whether the machine has ever been provisioned.
func (s snapshot) provisioned() bool {
	return ptr.Deref(s.Object.Status.Initialization.Provisioned, false)
}

// bootstrapSecretName returns the name of the bootstrap data Secret, empty if there is none. Machines of a pool use the
// Secret of the pool; their own name is empty. [decide] waits for it, and controller.act reads the Secret.
func (s snapshot) bootstrapSecretName() string {
	name := ""
	if s.Machine != nil {
		name = ptr.Deref(s.Machine.Spec.Bootstrap.DataSecretName, "")
	}
	if s.Pool != nil && name == "" {
		name = ptr.Deref(s.Pool.Spec.Template.Spec.Bootstrap.DataSecretName, "")
	}
	return name
}

// version returns the requested Kubernetes version, empty for any.
func (s snapshot) version() string {
	switch {
	case s.Pool != nil:
		return s.Pool.Spec.Template.Spec.Version
	case s.Machine != nil:
		return s.Machine.Spec.Version
	}
	return ""
}

// nodeVersion returns the Kubernetes version of the node image, empty if it is unknown.
func (s snapshot) nodeVersion() string {
	if s.HostMachine.State.Exists() {
		return s.HostMachine.NodeVersion
	}
	return s.Capabilities.ImageVersion
}

// versionSkew returns the unsupported version skew between the node image's kubelet and the hosted control plane, empty
// if it is supported. [decide] does not create or bootstrap a machine with such a skew.
func (s snapshot) versionSkew() string {
	if s.HostedControlPlane == nil {
		return ""
	}
	plane, errPlane := versions.Parse(s.HostedControlPlane.Status.Version)
	node, errNode := versions.Parse(s.nodeVersion())
	if errPlane != nil || errNode != nil {
		return ""
	}
	switch span := (versions.Span{Lowest: plane, Highest: plane}); {
	case span.IsOlderThan(node):
		return "newer than"
	case span.IsTooNewFor(node):
		return fmt.Sprintf("more than %d minor versions older than", versions.MaxKubeletLag)
	}
	return ""
}

// controlPlane reports whether the machine runs a control plane.
func (s snapshot) controlPlane() bool {
	if s.Machine == nil {
		return false
	}
	_, ok := s.Machine.Labels[clusterv1.MachineControlPlaneLabel]
	return ok
}

// failureDomain returns the failure domain of the machine. On a single host, failure domains are only names.
// desiredMachine and [report] call it.
func (s snapshot) failureDomain() string {
	if s.Machine != nil && s.Machine.Spec.FailureDomain != "" {
		return s.Machine.Spec.FailureDomain
	}
	return s.Object.Spec.FailureDomain
}
