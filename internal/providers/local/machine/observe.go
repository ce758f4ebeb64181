package machine

import (
	"context"
	"fmt"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	controlplanev1 "github.com/slipwayhq/slipway/api/controlplane/v1alpha1"
	infrav1 "github.com/slipwayhq/slipway/api/infrastructure/v1alpha1"
	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/loop"
	"github.com/slipwayhq/slipway/internal/policy"
	"github.com/slipwayhq/slipway/internal/providers/local/backend"
	versions "github.com/slipwayhq/slipway/internal/version"
)

// PoolAnnotation on a LocalMachine names the LocalMachinePool it was made for. It is not the owner reference, which
// passes to the Machine.
const PoolAnnotation = backend.PoolAnnotation

// Snapshot is what Decide looks at.
type Snapshot struct {
	Object *infrav1.LocalMachine
	// Machine that owns the object; nil if there is none (yet).
	Machine *clusterv1.Machine
	// Pool is the MachinePool of a machine that was made for one; nil for others.
	Pool *clusterv1.MachinePool
	// Cluster and Network (the LocalCluster) of the machine; nil if they do not exist (yet).
	Cluster *clusterv1.Cluster
	Network *infrav1.LocalCluster
	// Plane is the hosted control plane of the Cluster; nil if there is none, or another kind.
	Plane *controlplanev1.HostedControlPlane
	// Name of the machine, whether it exists or not; empty where spec.providerID is not one that the object can have.
	Name string
	// Policy is what the operator allows.
	Policy policy.Configuration
	// Terms are what is known of the machine beforehand.
	Terms backend.Terms
	// Host is the machine as it is.
	Host backend.Machine
	// Fault is why the backend could not be asked; nil if it was.
	Fault *fault.Fault
	// Progress of the bootstrap; nil while it was not asked for.
	Progress *backend.Progress
	// Etcd is what an order about the member of etcd has come to; nil while it was not asked for.
	Etcd *Etcd
	// Room is what a new machine can have; nil while it was not asked for.
	Room *backend.Room
	Now  time.Time
}

func (c *Controller) observe(ctx context.Context, o *infrav1.LocalMachine) (Snapshot, error) {
	s := Snapshot{Object: o, Now: c.now(), Name: backend.MachineNameOf(c.instance, o.Spec.ProviderID, client.ObjectKeyFromObject(o)), Policy: c.policy}
	if err := c.readOwners(ctx, &s); err != nil {
		return s, err
	}
	if s.Name == "" { // nothing is looked up by a name that someone made up
		return s, nil
	}
	b, err := c.backendOf(s)
	if err == nil {
		s.Terms = b.Machines.Terms(s.request())
		if err := c.readPlane(ctx, &s); err != nil {
			return s, err
		}
		s.Host, err = b.Machines.Inspect(ctx, s.ref())
	}
	if s.Fault = fault.As(err); s.Fault != nil {
		err = nil
	}
	return s, err
}

func (c *Controller) backendOf(s Snapshot) (backend.Backend, error) {
	return c.backends.Choose(s.Object.Spec.Backend.Name(), s.Object.Annotations)
}

// request is the machine that is asked for.
func (s Snapshot) request() backend.Request {
	return backend.Request{Object: s.Object, Name: s.Name, Version: s.version(), ControlPlane: s.controlPlane(), Policy: s.Policy}
}

// ref is how the machine is found: by its name, and once it was, by its ID.
func (s Snapshot) ref() backend.Ref {
	return backend.Ref{Object: client.ObjectKeyFromObject(s.Object), Name: s.Name, ID: s.Host.ID, Cluster: s.clusterName(), ControlPlane: s.controlPlane()}
}

func (s Snapshot) clusterName() string { return s.Object.Labels[clusterv1.ClusterNameLabel] }

func (c *Controller) readOwners(ctx context.Context, s *Snapshot) error {
	o := s.Object
	var err error
	if s.Machine, err = read(ctx, c.client, o.Namespace, machineOf(o), &clusterv1.Machine{}); err != nil {
		return err
	}
	if s.Cluster, err = read(ctx, c.client, o.Namespace, s.clusterName(), &clusterv1.Cluster{}); err != nil {
		return err
	}
	if s.Cluster != nil {
		ref := s.Cluster.Spec.InfrastructureRef
		if ref.Kind == "LocalCluster" && ref.APIGroup == infrav1.GroupVersion.Group {
			if s.Network, err = read(ctx, c.client, o.Namespace, ref.Name, &infrav1.LocalCluster{}); err != nil {
				return err
			}
		}
	}
	local, err := read(ctx, c.client, o.Namespace, o.Annotations[PoolAnnotation], &infrav1.LocalMachinePool{})
	if err != nil || local == nil {
		return err
	}
	s.Pool, err = read(ctx, c.client, o.Namespace, ownerOf(local, "MachinePool"), &clusterv1.MachinePool{})
	return err
}

// readPlane reads what runs on nodes, for those that are still to be made from an image.
func (c *Controller) readPlane(ctx context.Context, s *Snapshot) (err error) {
	if s.Cluster == nil || s.Terms.Image == "" || s.provisioned() {
		return nil
	}
	ref := s.Cluster.Spec.ControlPlaneRef
	if ref.Kind == "HostedControlPlane" && ref.APIGroup == controlplanev1.GroupVersion.Group {
		s.Plane, err = read(ctx, c.client, s.Object.Namespace, ref.Name, &controlplanev1.HostedControlPlane{})
	}
	return err
}

// read returns the object, nil if there is none or the name is empty. It is not copied: nothing may change it.
func read[O client.Object](ctx context.Context, c client.Reader, namespace, name string, o O) (O, error) {
	var none O
	if name == "" {
		return none, nil
	}
	err := c.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, o, client.UnsafeDisableDeepCopy)
	if apierrors.IsNotFound(err) {
		return none, nil
	}
	if err != nil {
		return none, fmt.Errorf("reading %T %s/%s: %w", o, namespace, name, err)
	}
	return o, nil
}

// answer finds out what Decide asks.
func (c *Controller) answer(ctx context.Context, s Snapshot, q loop.Question) (Snapshot, error) {
	b, err := c.backendOf(s)
	if err != nil {
		return s, err
	}
	if _, ok := q.(AskRoom); ok {
		return answerRoom(ctx, b.Machines, s)
	}
	if q, ok := q.(AskEtcd); ok {
		return c.answerEtcd(ctx, b.Etcds, s, q.Order)
	}
	return c.answerProgress(ctx, b.Scripts, s)
}

// answerProgress asks how far the bootstrap has come.
func (c *Controller) answerProgress(ctx context.Context, scripts backend.Scripts, s Snapshot) (Snapshot, error) {
	p, err := scripts.Progress(ctx, s.ref())
	if err == nil {
		p, err = c.withoutSecrets(ctx, s, p)
	}
	if err == nil && (p.Phase == backend.Succeeded || p.Phase == backend.Failed) {
		p.Skipped, err = c.skipped(ctx, s)
	}
	s.Progress = &p
	f := fault.As(err)
	switch {
	case f == nil:
	case f.Kind == fault.Unreachable, f.Kind == fault.Conflict:
		// It stopped to run, or to answer, since it was inspected: an event will follow.
		s.Progress, err = &backend.Progress{Phase: backend.InProgress}, nil
	default:
		s.Fault, err = f, nil
	}
	return s, err
}

// answerRoom asks what a new machine can have.
func answerRoom(ctx context.Context, machines backend.Machines, s Snapshot) (Snapshot, error) {
	want := spec(s)
	want.Mounts = s.Terms.Mounts
	room, err := machines.Room(ctx, want)
	if s.Fault = fault.As(err); s.Fault != nil {
		return s, nil
	}
	s.Room = &room
	return s, err
}

func machineOf(o client.Object) string { return ownerOf(o, "Machine") }

// ownerOf returns the name of the owner of a kind of Cluster API's core, empty if there is none.
func ownerOf(o client.Object, kind string) string {
	for _, ref := range o.GetOwnerReferences() {
		if group, _, _ := strings.Cut(ref.APIVersion, "/"); ref.Kind == kind && group == clusterv1.GroupVersion.Group {
			return ref.Name
		}
	}
	return ""
}

// provisioned reports whether the machine was provisioned once.
func (s Snapshot) provisioned() bool {
	p := s.Object.Status.Initialization.Provisioned
	return p != nil && *p
}

// secret returns the name of the bootstrap secret, empty while there is none. Machines of a pool share the
// pool's; theirs is empty.
func (s Snapshot) secret() string {
	if s.Machine != nil && s.Machine.Spec.Bootstrap.DataSecretName != nil && *s.Machine.Spec.Bootstrap.DataSecretName != "" {
		return *s.Machine.Spec.Bootstrap.DataSecretName
	}
	if s.Pool != nil && s.Pool.Spec.Template.Spec.Bootstrap.DataSecretName != nil {
		return *s.Pool.Spec.Template.Spec.Bootstrap.DataSecretName
	}
	return ""
}

// version returns the Kubernetes version asked for, empty for any.
func (s Snapshot) version() string {
	switch {
	case s.Pool != nil:
		return s.Pool.Spec.Template.Spec.Version
	case s.Machine != nil:
		return s.Machine.Spec.Version
	}
	return ""
}

// nodeVersion returns the Kubernetes version of the node image, empty where it is not known.
func (s Snapshot) nodeVersion() string {
	if s.Host.State.Exists() {
		return s.Host.NodeVersion
	}
	return s.Terms.ImageVersion
}

// skewed returns why a kubelet of the node image cannot be a node of the hosted control plane, empty if it can.
func (s Snapshot) skewed() string {
	if s.Plane == nil {
		return ""
	}
	plane, errPlane := versions.Parse(s.Plane.Status.Version)
	node, errNode := versions.Parse(s.nodeVersion())
	if errPlane != nil || errNode != nil {
		return ""
	}
	switch span := (versions.Span{Lowest: plane, Highest: plane}); {
	case span.IsOlderThan(node):
		return "newer than"
	case span.HasLeftBehind(node):
		return fmt.Sprintf("more than %d minor versions older than", versions.MaxKubeletLag)
	}
	return ""
}

// controlPlane reports whether the machine is to run a control plane.
func (s Snapshot) controlPlane() bool {
	if s.Machine == nil {
		return false
	}
	_, ok := s.Machine.Labels[clusterv1.MachineControlPlaneLabel]
	return ok
}

// failureDomain returns where the machine is placed: domains are names on one host.
func (s Snapshot) failureDomain() string {
	if s.Machine != nil && s.Machine.Spec.FailureDomain != "" {
		return s.Machine.Spec.FailureDomain
	}
	return s.Object.Spec.FailureDomain
}
