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
)

// PoolAnnotation on a LocalMachine names the LocalMachinePool it was made for. It is not the owner reference, which
// passes to the Machine (MP-07).
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
	// Name of the container, whether it exists or not; empty where spec.providerID is not one that the object can have.
	Name string
	// Policy is what the operator allows.
	Policy policy.Configuration
	// Simulated is the simulated machine as it is; nothing of the host is of interest then.
	Simulated backend.SimulatedMachine
	// Host is the container as it is.
	Host backend.Machine
	// Fault is why the host could not be asked; nil if it was.
	Fault *fault.Fault
	// Progress of the bootstrap; nil while it was not asked for.
	Progress *backend.Progress
	// Room is what a new container can have; nil while it was not asked for.
	Room *Room
	Now  time.Time
}

// Room is what a new container can have of the host.
type Room struct {
	// Own and All are how many containers there are, in the namespace and in all.
	Own, All int
	// Mounts are the extra mounts where they lead.
	Mounts []backend.Mount
	// Refused is why one of them cannot be had; nil: all can.
	Refused *fault.Fault
}

func (c *Controller) observe(ctx context.Context, o *infrav1.LocalMachine) (Snapshot, error) {
	s := Snapshot{Object: o, Now: c.now(), Name: containerName(c.instance, o), Policy: c.policy}
	if err := c.observeOwners(ctx, &s); err != nil {
		return s, err
	}
	if s.Name == "" { // nothing is looked up by a name that somebody made up
		return s, nil
	}
	if s.simulated() {
		return c.observeSimulated(ctx, s)
	}
	m, err := c.machines.Inspect(ctx, s.ref())
	if err != nil {
		if s.Fault = fault.As(err); s.Fault == nil {
			return s, err
		}
	}
	s.Host = m
	return s, nil
}

// ref is how the container is found: by its name, and once it was, by its ID.
func (s Snapshot) ref() backend.Ref {
	return backend.Ref{Object: client.ObjectKeyFromObject(s.Object), Name: s.Name, ID: s.Host.ID}
}

func (c *Controller) observeOwners(ctx context.Context, s *Snapshot) error {
	o := s.Object
	var err error
	if s.Machine, err = read(ctx, c.client, o.Namespace, machineOf(o), &clusterv1.Machine{}); err != nil {
		return err
	}
	if s.Cluster, err = read(ctx, c.client, o.Namespace, o.Labels[clusterv1.ClusterNameLabel], &clusterv1.Cluster{}); err != nil {
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
	if s.Cluster != nil && !s.simulated() && !s.provisioned() {
		ref := s.Cluster.Spec.ControlPlaneRef
		if ref.Kind == "HostedControlPlane" && ref.APIGroup == controlplanev1.GroupVersion.Group {
			if s.Plane, err = read(ctx, c.client, o.Namespace, ref.Name, &controlplanev1.HostedControlPlane{}); err != nil {
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

// read returns the object, nil if there is none or the name is empty. It is not copied: nobody may change it.
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
	if _, ok := q.(AskRoom); ok {
		return c.answerRoom(ctx, s)
	}
	return c.answerProgress(ctx, s)
}

// answerProgress asks how far the bootstrap has come.
func (c *Controller) answerProgress(ctx context.Context, s Snapshot) (Snapshot, error) {
	p, err := c.machines.Progress(ctx, s.ref())
	s.Progress = &p
	f := fault.As(err)
	switch {
	case f == nil:
	case f.Kind == fault.Unreachable, f.Kind == fault.Conflict:
		// It stopped to run, or to answer, since it was looked at: an event will follow.
		s.Progress, err = &backend.Progress{Phase: backend.InProgress}, nil
	default:
		s.Fault, err = f, nil
	}
	return s, err
}

// answerRoom asks how many containers there are, and where the mounts of the new one lead.
func (c *Controller) answerRoom(ctx context.Context, s Snapshot) (Snapshot, error) {
	list, err := c.machines.List(ctx)
	if err != nil {
		if s.Fault = fault.As(err); s.Fault != nil {
			err = nil
		}
		return s, err
	}
	s.Room = &Room{All: len(list)}
	for _, m := range list {
		if m.Owner.Object.Namespace == s.Object.Namespace {
			s.Room.Own++
		}
	}
	for _, x := range s.extraMounts() {
		m := backend.Mount{MachinePath: x.ContainerPath, ReadOnly: x.ReadOnly}
		if m.HostPath, err = c.machines.ResolveMount(ctx, x.HostPath); err != nil {
			if s.Room.Refused = fault.As(err); s.Room.Refused == nil {
				return s, err
			}
			break
		}
		s.Room.Mounts = append(s.Room.Mounts, m)
	}
	return s, nil
}

func (s Snapshot) extraMounts() []infrav1.Mount {
	if c := s.Object.Spec.Backend.Container; c != nil {
		return c.ExtraMounts
	}
	return nil
}

// containerName returns the name in the provider ID, where there is one: it outlives a move to another management
// cluster. It returns an empty one for an ID that this object cannot have.
func containerName(instance string, o *infrav1.LocalMachine) string {
	key := client.ObjectKeyFromObject(o)
	if o.Spec.ProviderID == "" {
		return backend.MachineName(instance, key)
	}
	name, ok := backend.MachineOf(o.Spec.ProviderID, key)
	if !ok {
		return ""
	}
	return name
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

// provisioned reports whether the machine was provisioned once (IM-05).
func (s Snapshot) provisioned() bool {
	p := s.Object.Status.Initialization.Provisioned
	return p != nil && *p
}

// secret returns the name of the bootstrap secret, empty while there is none (IM-11). Machines of a pool share the
// pool's; theirs is empty (MP-07).
func (s Snapshot) secret() string {
	if s.Machine != nil && s.Machine.Spec.Bootstrap.DataSecretName != nil && *s.Machine.Spec.Bootstrap.DataSecretName != "" {
		return *s.Machine.Spec.Bootstrap.DataSecretName
	}
	if s.Pool != nil && s.Pool.Spec.Template.Spec.Bootstrap.DataSecretName != nil {
		return *s.Pool.Spec.Template.Spec.Bootstrap.DataSecretName
	}
	return ""
}

// waitingForData says what is missing while there is no Secret with bootstrap data.
func (s Snapshot) waitingForData() string {
	bootstrap := clusterv1.Bootstrap{}
	switch {
	case s.Machine != nil:
		bootstrap = s.Machine.Spec.Bootstrap
	case s.Pool != nil:
		bootstrap = s.Pool.Spec.Template.Spec.Bootstrap
	}
	return backend.WaitingForBootstrapData(s.Cluster, bootstrap)
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

// image returns the node image to use, empty if nothing says which.
func (s Snapshot) image() string {
	if c := s.Object.Spec.Backend.Container; c != nil && c.Image != "" {
		return c.Image
	}
	if v := s.version(); v != "" {
		return backend.DefaultImage(v, s.controlPlane())
	}
	return ""
}

// nodeVersion returns the Kubernetes version that the node image carries, empty where it does not say.
func (s Snapshot) nodeVersion() string {
	if s.Host.State.Exists() {
		return s.Host.NodeVersion
	}
	if c := s.Object.Spec.Backend.Container; c != nil && c.Image != "" {
		return ""
	}
	return s.version()
}

// lacking returns the image that the control plane runs on every node and that the node image does not bring along, empty
// if there is none. A node never pulls, and a node image of `slipway image build` has the images of its own version.
func (s Snapshot) lacking() string {
	if s.Plane == nil || s.Plane.Status.Version == "" || s.nodeVersion() == "" || s.Plane.Status.Version == s.nodeVersion() {
		return ""
	}
	addons := s.Plane.Spec.Addons
	if addons.KubeProxy.Disabled || addons.ImageRepository != "" && addons.ImageRepository != backend.ImageRepository {
		return ""
	}
	return backend.ImageRepository + "/kube-proxy:" + s.Plane.Status.Version
}

// controlPlane reports whether the machine is to run a control plane.
func (s Snapshot) controlPlane() bool {
	if s.Machine == nil {
		return false
	}
	_, ok := s.Machine.Labels[clusterv1.MachineControlPlaneLabel]
	return ok
}

// failureDomain returns where the machine is placed (IM-03, FD-01): domains are names on one host.
func (s Snapshot) failureDomain() string {
	if s.Machine != nil && s.Machine.Spec.FailureDomain != "" {
		return s.Machine.Spec.FailureDomain
	}
	return s.Object.Spec.FailureDomain
}
