package machineset

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/kube"
	"github.com/slipwayhq/slipway/internal/naming"
	"github.com/slipwayhq/slipway/internal/ownership"
	"github.com/slipwayhq/slipway/sdk/contract"
)

// Snapshot is everything that a decision about a MachineSet looks at.
type Snapshot struct {
	Now      time.Time
	Settings Settings
	Set      *clusterv1.MachineSet
	// Cluster is nil where it does not exist.
	Cluster *clusterv1.Cluster
	// Deployment controls the set; nil: none does, or it does not exist.
	Deployment *clusterv1.MachineDeployment
	// Machines that the set controls, sorted by name.
	Machines []Member
	// Others match the selector and nobody controls them, or say by their label that they are of the set; sorted by name.
	Others []*clusterv1.Machine
	// Hidden are Machines of the set that the manager does not see, since they lack its watch label.
	Hidden []string
	// Created are names of Machines that were created and that the cache does not show yet.
	Created []string
	// Bootstrap has no reference where the template names a data Secret.
	Bootstrap, Infra Template
	// ControlPlane is only known where a preflight check may be asked for; nil: there is none, or it does not exist.
	ControlPlane        *contract.ControlPlaneView
	ControlPlaneProblem string
	// Workload is only known where no pass with a whole graph is on record.
	Workload ownership.Workload
	// Unanswered: the workload cluster was asked, and did not answer.
	Unanswered bool
	// Verified: for this generation of the set all Machines and clones were seen to be what it says.
	Verified bool
	// Clones is nil until it was asked for.
	Clones *Clones
	// Used are the templates of others; nil until it was asked for.
	Used used
	// Random parts for names of Machines.
	Random []string
}

// Member is a Machine of the set.
type Member struct {
	*clusterv1.Machine
	// Deleted: it is being deleted, though the cache may not show that yet.
	Deleted bool
	// Stale: the cache does not show our own last write of it yet.
	Stale bool
}

// Template is one of the two templates of the set.
type Template struct {
	Ref clusterv1.ContractVersionedObjectReference
	// Object has a nil Unstructured where there is none.
	Object contract.Object
	// Problem says what a person has to change before the reference can be read.
	Problem string
}

// Clones are the bootstrap configs and infrastructure machines of the Machines.
type Clones struct {
	// Items by kind and name.
	Items map[cloneKey]contract.Object
	// Orphans belong to no Machine and are still the set's; sorted by kind and name.
	Orphans []contract.Object
	// Stale are those of which the cache does not show our last write yet.
	Stale map[cloneKey]bool
}

type cloneKey struct{ kind, name string }

func (c *Controller) observe(ctx context.Context, set *clusterv1.MachineSet) (Snapshot, error) {
	s := Snapshot{Now: c.now(), Settings: c.settings, Set: set, Verified: c.isVerified(set)}
	steps := []func(context.Context, *Snapshot) error{
		c.readCluster, c.readDeployment, c.readMachines, c.readTemplates, c.readControlPlane,
	}
	for _, step := range steps {
		if err := step(ctx, &s); err != nil {
			return s, err
		}
	}
	for range missing(s) + spareNames {
		s.Random = append(s.Random, naming.Random(c.intn))
	}
	return s, nil
}

func (c *Controller) readCluster(ctx context.Context, s *Snapshot) (err error) {
	s.Cluster, err = kube.Cluster(ctx, c.client, clusterKey(s.Set))
	return err
}

// spareNames are random parts beyond those that are needed, for names that are taken.
const spareNames = 8

func (c *Controller) readDeployment(ctx context.Context, s *Snapshot) error {
	owner := metav1.GetControllerOf(s.Set)
	if owner == nil || owner.Kind != deploymentKind || !strings.HasPrefix(owner.APIVersion, clusterv1.GroupVersion.Group+"/") {
		return nil
	}
	deployment := &clusterv1.MachineDeployment{}
	err := c.client.Get(ctx, client.ObjectKey{Namespace: s.Set.Namespace, Name: owner.Name}, deployment, client.UnsafeDisableDeepCopy)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("reading MachineDeployment %s: %w", owner.Name, err)
	}
	if deployment.UID == owner.UID {
		s.Deployment = deployment
	}
	return nil
}

// readMachines sorts the Machines of the Cluster into those of the set and those that may become so.
func (c *Controller) readMachines(ctx context.Context, s *Snapshot) error {
	selector, err := metav1.LabelSelectorAsSelector(&s.Set.Spec.Selector)
	if err != nil {
		return fault.New(fault.Invalid, "InvalidSelector", "spec.selector of MachineSet %s cannot be used; correct it", s.Set.Name).From(err)
	}
	all := &clusterv1.MachineList{}
	err = c.client.List(ctx, all, client.InNamespace(s.Set.Namespace), client.MatchingFields{byCluster: s.Set.Spec.ClusterName},
		client.UnsafeDisableDeepCopy) // nothing in a snapshot is ever changed
	if err != nil {
		return fmt.Errorf("listing Machines of Cluster %s: %w", s.Set.Spec.ClusterName, err)
	}
	slices.SortFunc(all.Items, func(a, b clusterv1.Machine) int { return strings.Compare(a.Name, b.Name) })
	for i := range all.Items {
		s.place(&all.Items[i], selector)
	}
	if err := c.settle(ctx, s); err != nil {
		return err
	}
	if err := c.readHidden(ctx, s); err != nil {
		return err
	}
	return c.readWorkload(ctx, s, all.Items)
}

// readHidden looks for Machines of the set that lack the manager's watch label, where the set would create or delete some
// otherwise.
func (c *Controller) readHidden(ctx context.Context, s *Snapshot) (err error) {
	if replicas := s.Set.Spec.Replicas; deleting(*s) || replicas == nil || int(*replicas) == len(s.Machines)+len(s.Created) {
		return nil
	}
	s.Hidden, err = c.scope.Hidden(ctx, clusterv1.GroupVersion.WithKind("Machine"), clusterKey(s.Set), func(m client.Object) bool {
		return metav1.IsControlledBy(m, s.Set)
	})
	return err
}

func (s *Snapshot) place(m *clusterv1.Machine, selector labels.Selector) {
	owner := controllerOf(s.Set, m)
	selected, labelled := selector.Matches(labels.Set(m.Labels)), m.Labels[clusterv1.MachineSetNameLabel] == contract.LabelValue(s.Set.Name)
	switch {
	case owner == ownership.Self:
		s.Machines = append(s.Machines, Member{Machine: m, Deleted: !m.DeletionTimestamp.IsZero()})
	case labelled, selected && owner == ownership.Nobody:
		s.Others = append(s.Others, m)
	}
}

// controllerOf tells who controls a Machine. A MachineSet of the same name that does not exist any more is nobody.
func controllerOf(set *clusterv1.MachineSet, m *clusterv1.Machine) ownership.Controller {
	owner := metav1.GetControllerOfNoCopy(m)
	if owner != nil && owner.Kind == setKind && owner.Name == set.Name && owner.UID != set.UID {
		return ownership.Nobody
	}
	return ownership.ControllerOf(m, set.UID)
}

// settle adds what this process did and the cache does not show yet.
func (c *Controller) settle(ctx context.Context, s *Snapshot) error {
	at := map[string]int{}
	for i, m := range s.Machines {
		at[m.Name] = i
		s.Machines[i].Stale = c.writer.Writes().Stale(m)
	}
	for _, n := range c.created.Settle(s.Set.UID, func(name string) bool { _, shown := at[name]; return shown }) {
		gone, err := c.isGone(ctx, s, n)
		if err != nil {
			return err
		}
		if !gone {
			s.Created = append(s.Created, n.Name)
		}
	}
	for _, n := range c.deleted.Settle(s.Set.UID, func(name string) bool {
		i, there := at[name]
		return !there || s.Machines[i].Deleted
	}) {
		s.Machines[at[n.Name]].Deleted = true
	}
	return nil
}

// isGone reports whether a Machine that the cache should show by now was deleted before it did.
func (c *Controller) isGone(ctx context.Context, s *Snapshot, n kube.PendingName) (bool, error) {
	if s.Now.Sub(n.Since) < createdRecheck {
		return false, nil
	}
	err := c.live.Get(ctx, client.ObjectKey{Namespace: s.Set.Namespace, Name: n.Name}, &clusterv1.Machine{})
	if !apierrors.IsNotFound(err) {
		return false, err
	}
	c.created.Settle(s.Set.UID, func(name string) bool { return name == n.Name })
	return true, nil
}

// readWorkload looks for Nodes of Machines that do not exist, where the set may be one that was restored.
func (c *Controller) readWorkload(ctx context.Context, s *Snapshot, machines []clusterv1.Machine) error {
	if s.Set.Status.ObservedGeneration > 0 || s.Cluster == nil || !s.Set.DeletionTimestamp.IsZero() {
		return nil
	}
	initialized := isTrue(s.Cluster.Status.Initialization.ControlPlaneInitialized)
	if _, makesControlPlane := s.Set.Spec.Template.Labels[clusterv1.MachineControlPlaneLabel]; makesControlPlane && !initialized {
		s.Workload.Seen = true // there is no workload cluster without its Machines
		return nil
	}
	if !initialized {
		s.Workload.Problem = "its control plane is not initialized yet"
		return nil
	}
	nodes := &corev1.NodeList{}
	workload, err := c.workloads.Client(ctx, clusterKey(s.Set))
	if err == nil {
		err = workload.List(ctx, nodes)
	}
	if fault.KindOf(err) == fault.Unreachable {
		s.Workload.Problem, s.Unanswered = "it is not connected", true
		return nil
	}
	if err != nil {
		return fmt.Errorf("listing Nodes: %w", err)
	}
	exist := map[string]bool{}
	for i := range machines {
		exist[machines[i].Name] = true
	}
	s.Workload.Seen = true
	s.Workload.Strays = ownership.Strays(clusterKey(s.Set), nodes.Items,
		func(set string) bool { return set == s.Set.Name }, func(machine string) bool { return exist[machine] })
	return nil
}

func (c *Controller) readTemplates(ctx context.Context, s *Snapshot) error {
	for _, t := range []struct {
		into *Template
		ref  clusterv1.ContractVersionedObjectReference
	}{
		{&s.Bootstrap, s.Set.Spec.Template.Spec.Bootstrap.ConfigRef}, {&s.Infra, s.Set.Spec.Template.Spec.InfrastructureRef},
	} {
		o, problem, err := c.templates.Look(ctx, s.Set, t.ref)
		if err != nil {
			return err
		}
		*t.into = Template{Ref: t.ref, Object: o, Problem: problem}
	}
	return nil
}

func (c *Controller) readControlPlane(ctx context.Context, s *Snapshot) error {
	if s.Cluster == nil || !s.Cluster.Spec.ControlPlaneRef.IsDefined() || !asksPreflight(*s) {
		return nil
	}
	o, problem, err := c.planes.Look(ctx, s.Set, s.Cluster.Spec.ControlPlaneRef)
	s.ControlPlaneProblem = problem
	if err == nil && o.Unstructured != nil {
		view := contract.ControlPlane(o)
		s.ControlPlane = &view
	}
	return err
}

const (
	setKind        = "MachineSet"
	deploymentKind = "MachineDeployment"
)

func clusterKey(set *clusterv1.MachineSet) client.ObjectKey {
	return client.ObjectKey{Namespace: set.Namespace, Name: set.Spec.ClusterName}
}

func deleting(s Snapshot) bool { return !s.Set.DeletionTimestamp.IsZero() }

func isTrue(b *bool) bool { return b != nil && *b }
