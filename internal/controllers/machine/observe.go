package machine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"k8s.io/utils/ptr"

	"github.com/slipwayhq/slipway/internal/controllers/machine/drain"
	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/kube"
	"github.com/slipwayhq/slipway/internal/machines/inplace"
	slipwayworkload "github.com/slipwayhq/slipway/internal/workload"
	"github.com/slipwayhq/slipway/sdk/contract"
)

// snapshot is the input of all decisions about a Machine. observe fills it.
type snapshot struct {
	Now      time.Time
	Settings Settings
	Machine  *clusterv1.Machine
	// Cluster is nil if it does not exist.
	Cluster *clusterv1.Cluster
	// Bootstrap and Infra are the referenced objects.
	Bootstrap contract.BootstrapConfigView
	Infra     contract.InfraMachineView
	// Set is the MachineSet that controls the Machine, and Deployment the MachineDeployment that controls Set. Both
	// are nil if one of them does not exist.
	Set        *clusterv1.MachineSet
	Deployment *clusterv1.MachineDeployment
	Node       observedNode
	// Connection is the health of the connection to the workload cluster.
	Connection slipwayworkload.Health
	// ControlPlane is only read for Machines that are being deleted.
	ControlPlane controlPlane
	// Drain has the steps of the Pods of the Node in its drain. Drain and Volumes are nil until Decide requests them.
	// PodsProblem explains what a user has to change before Pods can be drained.
	Drain       *drain.Plan
	PodsProblem string
	Volumes     *drain.Volumes
	// Progress is the state of an in-place update, or nil until the extension was called.
	Progress *inplace.Progress
}

// observedNode is the observed state of the Machine's Node. readNode fills it.
type observedNode struct {
	// WasRead is set if the workload cluster was read successfully.
	WasRead bool
	// Unreachable is set if the workload cluster could not be read. Problem is the error, in case the workload cluster
	// is otherwise reachable.
	Unreachable bool
	Problem     string
	// RetryAfter is the delay until the next call to the workload cluster is allowed, if its request limit is reached.
	RetryAfter time.Duration
	// Waiting explains why the workload cluster was not read yet.
	Waiting string
	// Item is nil if there is no Node.
	Item *corev1.Node
	// Duplicates are the names of several Nodes that share the provider ID. Item is then nil.
	Duplicates []string
	// OtherProviderID is the provider ID of the Node with the name of the Machine's Node, if it differs from the
	// Machine's. Item is then nil.
	OtherProviderID string
}

// controlPlane describes whether the workload cluster still has a control plane that could remove a Node.
type controlPlane struct {
	// Deleting is set if the control plane object is being deleted, External if it has no Machines, and Unreadable
	// if neither is known.
	Deleting, External, Unreadable bool
	// Others is the number of other control plane Machines that are not being deleted.
	Others int
}

// observe reads the snapshot of a Machine. Package reconciler calls it at the beginning of each reconciliation.
func (c *controller) observe(ctx context.Context, m *clusterv1.Machine) (snapshot, error) {
	s := snapshot{Now: c.now(), Settings: c.settings, Machine: m, Connection: c.workloads.Health(clusterKey(m))}
	steps := []func(context.Context, *snapshot) error{
		c.readCluster, c.readBootstrap, c.readInfra, c.readOwners, c.readControlPlane, c.readNode,
	}
	for _, step := range steps {
		if err := step(ctx, &s); err != nil {
			return s, err
		}
	}
	return s, nil
}

func (c *controller) readCluster(ctx context.Context, s *snapshot) (err error) {
	s.Cluster, err = kube.GetCluster(ctx, c.client, clusterKey(s.Machine))
	return err
}

func (c *controller) readBootstrap(ctx context.Context, s *snapshot) error {
	o, err := c.refs.GetReferenced(ctx, s.Machine, s.Machine.Spec.Bootstrap.ConfigRef)
	s.Bootstrap = contract.BootstrapConfig(o)
	return err
}

func (c *controller) readInfra(ctx context.Context, s *snapshot) error {
	o, err := c.refs.GetReferenced(ctx, s.Machine, s.Machine.Spec.InfrastructureRef)
	s.Infra = contract.InfraMachine(o)
	return err
}

// readOwners reads the MachineSet of the Machine and its MachineDeployment.
func (c *controller) readOwners(ctx context.Context, s *snapshot) error {
	set := &clusterv1.MachineSet{}
	ok, err := c.readOwner(ctx, s.Machine, "MachineSet", set)
	if err != nil || !ok {
		return err
	}
	deployment := &clusterv1.MachineDeployment{}
	if ok, err = c.readOwner(ctx, set, "MachineDeployment", deployment); err != nil || !ok {
		return err
	}
	s.Set, s.Deployment = set, deployment
	return nil
}

// readOwner reads the controller of an object if it is of the kind and exists. The result comes from the cache
// without a copy and must not be modified.
func (c *controller) readOwner(ctx context.Context, o metav1.Object, kind string, into client.Object) (bool, error) {
	owner := metav1.GetControllerOf(o)
	if owner == nil || owner.Kind != kind || !strings.HasPrefix(owner.APIVersion, clusterv1.GroupVersion.Group+"/") {
		return false, nil
	}
	err := c.client.Get(ctx, client.ObjectKey{Namespace: o.GetNamespace(), Name: owner.Name}, into, client.UnsafeDisableDeepCopy)
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("reading %s %s: %w", kind, owner.Name, err)
	}
	return true, nil
}

// readControlPlane reads whether the workload cluster still has a control plane that could remove a Node.
func (c *controller) readControlPlane(ctx context.Context, s *snapshot) error {
	if !deleting(*s) || s.Cluster == nil {
		return nil
	}
	o, err := c.refs.GetReferenced(ctx, s.Machine, s.Cluster.Spec.ControlPlaneRef)
	if err != nil {
		return err
	}
	external := contract.ControlPlane(o).ExternalManaged
	s.ControlPlane.Unreadable = o.Presence() == contract.Unreadable || external.Err() != nil
	s.ControlPlane.External = external.Or(false)
	s.ControlPlane.Deleting = o.Presence() == contract.Found && !o.GetDeletionTimestamp().IsZero()
	list := &clusterv1.MachineList{}
	err = c.client.List(ctx, list, client.InNamespace(s.Machine.Namespace), client.MatchingFields{byCluster: s.Machine.Spec.ClusterName},
		client.UnsafeDisableDeepCopy)
	if err != nil {
		return fmt.Errorf("listing the Machines of the Cluster: %w", err)
	}
	for i := range list.Items {
		m := &list.Items[i]
		if isControlPlane(m) && m.DeletionTimestamp.IsZero() && m.Name != s.Machine.Name {
			s.ControlPlane.Others++
		}
	}
	return nil
}

// waitsForInitialization is the message for an unknown Node before the control plane is initialized.
const waitsForInitialization = "Waiting for Cluster control plane to be initialized"

// readNode looks up the Node by the provider ID, or by the previously recorded name, as soon as the workload
// cluster is connected. This cannot wait until the control plane is initialized, because the control plane may
// count as initialized only after its first Machine has a Node. Nodes are watched only after the initialization. An
// unreachable workload cluster is recorded in the snapshot and is not an error.
func (c *controller) readNode(ctx context.Context, s *snapshot) (err error) {
	switch {
	case s.Cluster == nil:
		s.Node.Waiting = "Waiting for the Cluster to exist"
		return nil
	case !ptr.Deref(s.Cluster.Status.Initialization.InfrastructureProvisioned, false):
		s.Node.Waiting = "Waiting for Cluster status.initialization.infrastructureProvisioned to be true"
		return nil
	}
	if initialized(*s) {
		err = c.watchNodes(ctx, clusterKey(s.Machine))
	}
	if err == nil {
		err = c.findNode(ctx, s)
	}
	switch {
	case fault.KindOf(err) == fault.Unreachable && initialized(*s):
		s.Node = observedNode{Unreachable: true, RetryAfter: retryAfterRejection(err), Problem: fault.UserMessage(err)}
	case fault.KindOf(err) == fault.Unreachable:
		s.Node = observedNode{Waiting: waitsForInitialization}
	default:
		s.Node.WasRead = err == nil
		return err
	}
	return nil
}

// retryAfterRejection returns the delay until a call that was rejected by the request limit may be repeated, or 0 for
// any other error.
func retryAfterRejection(err error) time.Duration {
	if !errors.Is(err, slipwayworkload.ErrRateLimited) {
		return 0
	}
	return fault.RetryAfter(err)
}

func initialized(s snapshot) bool {
	return s.Cluster != nil && ptr.Deref(s.Cluster.Status.Initialization.ControlPlaneInitialized, false)
}

func (c *controller) findNode(ctx context.Context, s *snapshot) error {
	key := clusterKey(s.Machine)
	if id := providerID(*s); id != "" {
		nodes, err := c.workloads.Nodes(ctx, key, id)
		if err != nil {
			return err
		}
		switch len(nodes) {
		case 0:
		case 1:
			s.Node.Item = &nodes[0]
			return nil
		default:
			for _, n := range nodes {
				s.Node.Duplicates = append(s.Node.Duplicates, n.Name)
			}
			slices.Sort(s.Node.Duplicates)
			return nil
		}
	}
	if !s.Machine.Status.NodeRef.IsDefined() {
		return c.findLastNode(ctx, s)
	}
	workload, err := c.workloads.Client(ctx, key)
	if err != nil {
		return err
	}
	node := &corev1.Node{}
	err = workload.Get(ctx, client.ObjectKey{Name: s.Machine.Status.NodeRef.Name}, node)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("reading Node %s: %w", s.Machine.Status.NodeRef.Name, err)
	}
	if node.Spec.ProviderID == "" { // a Node with another provider ID may belong to another machine
		s.Node.Item = node
	}
	s.Node.OtherProviderID = node.Spec.ProviderID
	return nil
}

// findLastNode lists Nodes from the API server of the workload cluster for a Machine that is being deleted and has
// no known Node. It runs when only the Node is left to delete, because the Node may have joined too late for the
// cache. Unstructured objects are never cached.
func (c *controller) findLastNode(ctx context.Context, s *snapshot) error {
	id := s.Machine.Spec.ProviderID
	if !deleting(*s) || id == "" || !s.infra().IsGone() || !s.bootstrap().IsGone() || skipsNodeDeletion(*s) {
		return nil
	}
	workload, err := c.workloads.Client(ctx, clusterKey(s.Machine))
	if err != nil {
		return err
	}
	nodes := &unstructured.UnstructuredList{}
	nodes.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("NodeList"))
	if err := workload.List(ctx, nodes); err != nil {
		return fmt.Errorf("looking for the Node with provider ID %s: %w", id, err)
	}
	for _, n := range nodes.Items {
		if found, _, _ := unstructured.NestedString(n.Object, "spec", "providerID"); found == id {
			s.Node.Item = &corev1.Node{}
			return runtime.DefaultUnstructuredConverter.FromUnstructured(n.Object, s.Node.Item)
		}
	}
	return nil
}

func clusterKey(m *clusterv1.Machine) client.ObjectKey {
	return client.ObjectKey{Namespace: m.Namespace, Name: m.Spec.ClusterName}
}

// providerID returns the provider ID in the spec, or the one that is about to be copied there.
func providerID(s snapshot) string {
	if s.Machine.Spec.ProviderID != "" || !s.infra().IsDone() {
		return s.Machine.Spec.ProviderID
	}
	return s.Infra.ProviderID.Or("")
}

func deleting(s snapshot) bool { return !s.Machine.DeletionTimestamp.IsZero() }

func isControlPlane(m *clusterv1.Machine) bool {
	_, is := m.Labels[clusterv1.MachineControlPlaneLabel]
	return is
}
