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

	"github.com/slipwayhq/slipway/internal/drain"
	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/inplace"
	"github.com/slipwayhq/slipway/internal/kube"
	"github.com/slipwayhq/slipway/internal/remote"
	"github.com/slipwayhq/slipway/sdk/contract"
)

// Snapshot is everything that a decision about a Machine looks at.
type Snapshot struct {
	Now      time.Time
	Settings Settings
	Machine  *clusterv1.Machine
	// Cluster is nil where it does not exist.
	Cluster *clusterv1.Cluster
	// Bootstrap and Infra are what the references point to.
	Bootstrap contract.BootstrapConfigView
	Infra     contract.InfraMachineView
	// Set is the MachineSet that made the Machine, of the Deployment. Both are nil where one of them is not there.
	Set        *clusterv1.MachineSet
	Deployment *clusterv1.MachineDeployment
	Node       Node
	// Connection to the workload cluster.
	Connection remote.Health
	// ControlPlane is only known of Machines that are deleted.
	ControlPlane ControlPlane
	// Pods and Volumes of the Node are nil until they were asked for. PodsProblem says what a person has to change
	// before they can be judged.
	Pods        *drain.View
	PodsProblem string
	Volumes     *drain.Volumes
	// Progress of an update in place; nil until the extension was called.
	Progress *inplace.Progress
}

// Node is what is known of the Machine's Node.
type Node struct {
	// Asked: the workload cluster was asked, and answered.
	Asked bool
	// Down: it could not be asked, since it is not connected; Problem is why, where the workload cluster answers otherwise.
	Down    bool
	Problem string
	// Busy is when there is a turn at the workload cluster again, where all have more to ask than it is to answer at once.
	Busy time.Duration
	// Waiting is why it was not asked yet.
	Waiting string
	// Item is nil where there is no Node.
	Item *corev1.Node
	// Rivals are the names of Nodes that share the provider ID; with them there is
	// no Item.
	Rivals []string
	// Stranger is the provider ID of the Node that has the name of the Machine's Node, where that is not the Machine's; then there
	// is no Item.
	Stranger string
}

// ControlPlane is what decides whether a workload cluster still has a control plane that could remove a Node.
type ControlPlane struct {
	// Deleting: the control plane object is being deleted; External: it has no Machines. Unreadable: it may be either.
	Deleting, External, Unreadable bool
	// Others is the number of control plane Machines besides this one that stay.
	Others int
}

func (c *Controller) observe(ctx context.Context, m *clusterv1.Machine) (Snapshot, error) {
	s := Snapshot{Now: c.now(), Settings: c.settings, Machine: m, Connection: c.workloads.Health(clusterKey(m))}
	steps := []func(context.Context, *Snapshot) error{
		c.readCluster, c.readBootstrap, c.readInfra, c.readOwners, c.readControlPlane, c.readNode,
	}
	for _, step := range steps {
		if err := step(ctx, &s); err != nil {
			return s, err
		}
	}
	return s, nil
}

func (c *Controller) readCluster(ctx context.Context, s *Snapshot) (err error) {
	s.Cluster, err = kube.Cluster(ctx, c.client, clusterKey(s.Machine))
	return err
}

func (c *Controller) readBootstrap(ctx context.Context, s *Snapshot) error {
	o, err := c.refs.Follow(ctx, s.Machine, s.Machine.Spec.Bootstrap.ConfigRef)
	s.Bootstrap = contract.BootstrapConfig(o)
	return err
}

func (c *Controller) readInfra(ctx context.Context, s *Snapshot) error {
	o, err := c.refs.Follow(ctx, s.Machine, s.Machine.Spec.InfrastructureRef)
	s.Infra = contract.InfraMachine(o)
	return err
}

// readOwners finds the MachineSet of the Machine and its MachineDeployment.
func (c *Controller) readOwners(ctx context.Context, s *Snapshot) error {
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

// readOwner reads the controller of an object if it is of the kind and exists. It is not copied: no one may change it.
func (c *Controller) readOwner(ctx context.Context, o metav1.Object, kind string, into client.Object) (bool, error) {
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

// readControlPlane finds out whether the workload cluster still has someone who
// could remove a Node.
func (c *Controller) readControlPlane(ctx context.Context, s *Snapshot) error {
	if !deleting(*s) || s.Cluster == nil {
		return nil
	}
	o, err := c.refs.Follow(ctx, s.Machine, s.Cluster.Spec.ControlPlaneRef)
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

// waitsForInitialization is said of a Node of which nothing is known while the control plane comes into being.
const waitsForInitialization = "Waiting for Cluster control plane to be initialized"

// readNode finds the Node by the provider ID, else by the name that was found before, as soon as the workload cluster is
// connected: a control plane may count as initialized only once its first Machine has a Node. Nodes are followed only
// after that. A workload cluster that does not answer is a fact, not an error.
func (c *Controller) readNode(ctx context.Context, s *Snapshot) (err error) {
	switch {
	case s.Cluster == nil:
		s.Node.Waiting = "Waiting for the Cluster to exist"
		return nil
	case !isTrue(s.Cluster.Status.Initialization.InfrastructureProvisioned):
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
		s.Node = Node{Down: true, Busy: turn(err), Problem: fault.UserMessage(err)}
	case fault.KindOf(err) == fault.Unreachable:
		s.Node = Node{Waiting: waitsForInitialization}
	default:
		s.Node.Asked = err == nil
		return err
	}
	return nil
}

// turn is when the call that failed has its turn; 0 where it failed for another reason.
func turn(err error) time.Duration {
	if !errors.Is(err, remote.ErrCrowded) {
		return 0
	}
	return fault.RetryAfter(err)
}

func initialized(s Snapshot) bool {
	return s.Cluster != nil && isTrue(s.Cluster.Status.Initialization.ControlPlaneInitialized)
}

func (c *Controller) findNode(ctx context.Context, s *Snapshot) error {
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
				s.Node.Rivals = append(s.Node.Rivals, n.Name)
			}
			slices.Sort(s.Node.Rivals)
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
	if node.Spec.ProviderID == "" { // with another one it may be the Node of another machine
		s.Node.Item = node
	}
	s.Node.Stranger = node.Spec.ProviderID
	return nil
}

// findLastNode asks the workload cluster itself for the Node of a Machine that goes and has not seen one, when all that is
// left to do is to delete it: it may have come too late for the cache. Unstructured objects are never cached.
func (c *Controller) findLastNode(ctx context.Context, s *Snapshot) error {
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

// providerID is what was taken over, or what is about to be.
func providerID(s Snapshot) string {
	if s.Machine.Spec.ProviderID != "" || !s.infra().IsDone() {
		return s.Machine.Spec.ProviderID
	}
	return s.Infra.ProviderID.Or("")
}

func deleting(s Snapshot) bool { return !s.Machine.DeletionTimestamp.IsZero() }

func isControlPlane(m *clusterv1.Machine) bool {
	_, is := m.Labels[clusterv1.MachineControlPlaneLabel]
	return is
}

func isTrue(b *bool) bool { return b != nil && *b }
