package machineset

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/kube"
	"github.com/slipwayhq/slipway/internal/machines"
	"github.com/slipwayhq/slipway/internal/machines/clone"
	"github.com/slipwayhq/slipway/internal/naming"
	"github.com/slipwayhq/slipway/internal/reconciler/ownership"
	"github.com/slipwayhq/slipway/sdk/contract"
)

// snapshot is the input of all decisions about a MachineSet. observe fills it.
type snapshot struct {
	Now      time.Time
	Settings Settings
	Set      *clusterv1.MachineSet
	// Cluster is nil if it does not exist.
	Cluster *clusterv1.Cluster
	// Deployment is the MachineDeployment that controls the MachineSet. It is nil if there is none or it does not
	// exist.
	Deployment *clusterv1.MachineDeployment
	// Machines are the Machines that the MachineSet controls, sorted by name.
	Machines machines.OwnedMachines
	// Others are Machines that match the selector and have no controller, or name the MachineSet in their label,
	// sorted by name.
	Others []*clusterv1.Machine
	// Hidden are Machines of the MachineSet that are outside the manager's scope because they lack its watch label.
	Hidden []string
	// Created are the names of created Machines that the cache does not show yet.
	Created []string
	// Bootstrap has no reference if the template names a data Secret.
	Bootstrap, Infra clone.Template
	// ControlPlane is read only if a preflight check may be needed.
	ControlPlane contract.ControlPlaneView
	// Workload is read only if it was not recorded that the owners of all Machines are known.
	Workload ownership.Workload
	// Unanswered is set if the workload cluster was called and did not respond.
	Unanswered bool
	// AwaitsWorkloadCluster is set if there is no workload cluster yet and the MachineSet waits for it.
	AwaitsWorkloadCluster bool
	// Verified is set if all Machines and clones were completely compared for this generation and were up to date.
	Verified bool
	// Clones is nil until Decide requests it.
	Clones *clone.Clones
	// Target is the MachineSet that receives the surplus Machines. It is nil if it does not exist or none is named.
	Target *clusterv1.MachineSet
	// Used are the templates that other owners use. It is nil until Decide requests it.
	Used clone.UsedTemplates
	// Random are random parts for names of Machines. UsedNames are the resulting names that Machines of other owners
	// already have.
	Random, UsedNames []string
}

// observe reads the snapshot of a MachineSet. Package reconciler calls it at the beginning of each reconciliation.
func (c *controller) observe(ctx context.Context, set *clusterv1.MachineSet) (snapshot, error) {
	s := snapshot{Now: c.now(), Settings: c.settings, Set: set, Verified: c.verified.Has(set)}
	steps := []func(context.Context, *snapshot) error{
		c.readCluster, c.readDeployment, c.readTarget, c.readMachines, c.readTemplates, c.readControlPlane,
	}
	for _, step := range steps {
		if err := step(ctx, &s); err != nil {
			return s, err
		}
	}
	for range missing(s) + spareNames {
		s.Random = append(s.Random, naming.Random(c.intn))
	}
	return s, c.readTaken(ctx, &s)
}

// readTaken reads which of the possible names of new Machines already exist.
func (c *controller) readTaken(ctx context.Context, s *snapshot) error {
	if missing(*s) <= 0 {
		return nil
	}
	names, err := newNames(*s, len(s.Random))
	if err != nil {
		return nil // [decide] reports the error
	}
	s.UsedNames, err = machines.ExistingNames(ctx, c.client, s.Set.Namespace, names)
	return err
}

func (c *controller) readCluster(ctx context.Context, s *snapshot) (err error) {
	s.Cluster, err = kube.GetCluster(ctx, c.client, clusterKey(s.Set))
	return err
}

// spareNames is the number of additional random parts, in case names are already used.
const spareNames = 8

func (c *controller) readDeployment(ctx context.Context, s *snapshot) error {
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

// readMachines lists the Machines of the Cluster that the MachineSet controls or may adopt.
func (c *controller) readMachines(ctx context.Context, s *snapshot) error {
	selector, err := metav1.LabelSelectorAsSelector(&s.Set.Spec.Selector)
	if err != nil {
		return fault.New(fault.Invalid, "InvalidSelector", "spec.selector of MachineSet %s cannot be used; correct it", s.Set.Name).From(err)
	}
	all := &clusterv1.MachineList{}
	err = c.client.List(ctx, all, client.InNamespace(s.Set.Namespace), client.MatchingFields{byCluster: s.Set.Spec.ClusterName},
		client.UnsafeDisableDeepCopy) // objects in a snapshot are never modified
	if err != nil {
		return fmt.Errorf("listing Machines of Cluster %s: %w", s.Set.Spec.ClusterName, err)
	}
	slices.SortFunc(all.Items, func(a, b clusterv1.Machine) int { return strings.Compare(a.Name, b.Name) })
	for i := range all.Items {
		c.place(s, &all.Items[i], selector)
	}
	if s.Created, err = c.pending.Settle(ctx, c.live, s.Set, s.Machines, s.Now); err != nil {
		return err
	}
	if err := c.readHidden(ctx, s); err != nil {
		return err
	}
	return c.readWorkload(ctx, s, all.Items)
}

// readHidden searches for Machines of the MachineSet that lack the manager's watch label, if the MachineSet would
// otherwise create or delete Machines.
func (c *controller) readHidden(ctx context.Context, s *snapshot) (err error) {
	if replicas := s.Set.Spec.Replicas; isDeleting(*s) || replicas == nil || int(*replicas) == len(s.Machines)+len(s.Created) {
		return nil
	}
	s.Hidden, err = c.scope.Hidden(ctx, clusterv1.GroupVersion.WithKind("Machine"), clusterKey(s.Set), func(m client.Object) bool {
		return metav1.IsControlledBy(m, s.Set)
	})
	return err
}

func (c *controller) place(s *snapshot, m *clusterv1.Machine, selector labels.Selector) {
	owner := ownership.ControllerOfChild(m, setKind, s.Set)
	selected, labelled := selector.Matches(labels.Set(m.Labels)), m.Labels[clusterv1.MachineSetNameLabel] == contract.LabelValue(s.Set.Name)
	switch {
	case owner == ownership.ThisController:
		s.Machines = append(s.Machines, machines.OwnedMachine{
			Machine: m, Deleted: !m.DeletionTimestamp.IsZero(), Stale: c.writer.Writes().Stale(m),
		})
	case labelled, selected && owner == ownership.NoController:
		s.Others = append(s.Others, m)
	}
}

// readWorkload searches for Nodes of Machines that do not exist, if the MachineSet may have been restored.
func (c *controller) readWorkload(ctx context.Context, s *snapshot, all []clusterv1.Machine) error {
	if s.Set.Status.ObservedGeneration > 0 || s.Cluster == nil || !s.Set.DeletionTimestamp.IsZero() {
		return nil
	}
	initialized := ptr.Deref(s.Cluster.Status.Initialization.ControlPlaneInitialized, false)
	if _, makesControlPlane := s.Set.Spec.Template.Labels[clusterv1.MachineControlPlaneLabel]; makesControlPlane && !initialized {
		s.Workload.NodesRead = true // there is no workload cluster without its Machines
		return nil
	}
	if !initialized && c.begun.Has(s.Set.UID, c.now()) {
		s.Workload.NodesRead = true // the MachineSet has neither Machines nor Nodes yet
		return nil
	}
	if !initialized {
		s.AwaitsWorkloadCluster, s.Workload.Problem = true, "its control plane is not initialized yet"
		return nil
	}
	exist := map[string]bool{}
	for i := range all {
		exist[all[i].Name] = true
	}
	var err error
	s.Workload, err = machines.ReadOrphanedNodes(ctx, c.workloads, clusterKey(s.Set), s.Set.Name, exist)
	s.Unanswered = err == nil && !s.Workload.NodesRead
	return err
}

func (c *controller) readTemplates(ctx context.Context, s *snapshot) error {
	spec := s.Set.Spec.Template.Spec
	templates, err := clone.ReadTemplates(ctx, c.templates, s.Set, spec.Bootstrap.ConfigRef, spec.InfrastructureRef)
	if err != nil {
		return err
	}
	s.Bootstrap, s.Infra = templates[0], templates[1]
	return nil
}

func (c *controller) readControlPlane(ctx context.Context, s *snapshot) error {
	if s.Cluster == nil || !s.Cluster.Spec.ControlPlaneRef.IsDefined() || !needsPreflight(*s) && !transfersMachines(*s) {
		return nil
	}
	o, err := c.controlPlanes.GetReferenced(ctx, s.Set, s.Cluster.Spec.ControlPlaneRef)
	s.ControlPlane = contract.ControlPlane(o)
	return err
}

const (
	setKind        = "MachineSet"
	deploymentKind = "MachineDeployment"
)

func clusterKey(set *clusterv1.MachineSet) client.ObjectKey {
	return client.ObjectKey{Namespace: set.Namespace, Name: set.Spec.ClusterName}
}

func isDeleting(s snapshot) bool { return !s.Set.DeletionTimestamp.IsZero() }

// readClones performs the read for askClones. Package reconciler calls it when [decide] requests askClones.
func (c *controller) readClones(ctx context.Context, s snapshot) (snapshot, error) {
	var err error
	s.Clones, err = clone.Reader{References: c.clones, Writes: c.writer.Writes()}.Read(ctx, s.clones())
	if err == nil && len(s.Created) == 0 && s.State().IsUpToDate() {
		c.verified.Add(s.Set)
		s.Verified = true
	}
	return s, err
}
