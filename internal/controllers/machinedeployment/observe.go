package machinedeployment

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slipwayhq/slipway/internal/inplace"
	"github.com/slipwayhq/slipway/internal/kube"
	"github.com/slipwayhq/slipway/internal/machines/clone"
)

// kind of the objects that the controller is about.
const kind = "MachineDeployment"

// forgetAfter is when a MachineSet that was created and never seen must have been deleted before the cache showed it.
const forgetAfter = time.Minute

// Snapshot is everything that a decision about a MachineDeployment looks at.
type Snapshot struct {
	Now        time.Time
	Deployment *clusterv1.MachineDeployment
	// Cluster is nil where it does not exist.
	Cluster *clusterv1.Cluster
	// Sets are the MachineSets that the deployment controls or may adopt, sorted by name.
	Sets []clusterv1.MachineSet
	// Machines of each MachineSet by its name, sorted by name.
	Machines map[string][]clusterv1.Machine
	// Strays are Machines of the deployment whose MachineSet does not exist, sorted by name.
	Strays []clusterv1.Machine
	// Templates that new Machines are created from, that of the infrastructure first; a reference that is not set is not among them.
	Templates clone.Templates
	// Hidden are MachineSets of the deployment that the manager does not see, since they lack its watch label.
	Hidden []string
	// InPlace is whether the Machines of old MachineSets can be updated in place, by the names of those; nil until it was asked for.
	InPlace map[string]inplace.Answer
	// Stale is true while the cache does not show this controller's last writes of its MachineSets.
	Stale bool
	Settings
}

func (c *Controller) observe(ctx context.Context, d *clusterv1.MachineDeployment) (Snapshot, error) {
	s := Snapshot{Now: c.now(), Deployment: d, Settings: c.settings}
	for _, step := range []func(context.Context, *Snapshot) error{c.readCluster, c.readSets, c.readHidden, c.readMachines, c.readTemplates} {
		if err := step(ctx, &s); err != nil {
			return s, err
		}
	}
	return s, nil
}

func (c *Controller) readCluster(ctx context.Context, s *Snapshot) (err error) {
	s.Cluster, err = kube.Cluster(ctx, c.client, client.ObjectKey{Namespace: s.Deployment.Namespace, Name: s.Deployment.Spec.ClusterName})
	return err
}

func (c *Controller) readSets(ctx context.Context, s *Snapshot) error {
	list := &clusterv1.MachineSetList{}
	err := c.client.List(ctx, list, client.InNamespace(s.Deployment.Namespace), client.MatchingFields{setsByCluster: s.Deployment.Spec.ClusterName},
		client.UnsafeDisableDeepCopy) // nothing in a snapshot is ever changed
	if err != nil {
		return fmt.Errorf("listing MachineSets: %w", err)
	}
	for _, set := range list.Items {
		if controls(s.Deployment, &set) || adoptable(s.Deployment, &set) {
			s.Sets = append(s.Sets, set)
			s.Stale = s.Stale || c.writer.Writes().Stale(&set)
		}
	}
	slices.SortFunc(s.Sets, func(a, b clusterv1.MachineSet) int { return strings.Compare(a.Name, b.Name) })
	for _, p := range c.created.Settle(s.Deployment.UID, func(name string) bool { return setNamed(*s, name) != nil }) {
		s.Stale = s.Stale || s.Now.Sub(p.Since) < forgetAfter
	}
	return nil
}

// readHidden searches for MachineSets of the deployment that lack the manager's watch label, where the others do not have all of
// its replicas.
func (c *Controller) readHidden(ctx context.Context, s *Snapshot) (err error) {
	var replicas int32
	for i := range s.Sets {
		replicas += replicasOf(&s.Sets[i])
	}
	if !s.Deployment.DeletionTimestamp.IsZero() || len(s.Sets) > 0 && replicas == ptr.Deref(s.Deployment.Spec.Replicas, 0) {
		return nil
	}
	cluster := client.ObjectKey{Namespace: s.Deployment.Namespace, Name: s.Deployment.Spec.ClusterName}
	s.Hidden, err = c.scope.Hidden(ctx, clusterv1.GroupVersion.WithKind("MachineSet"), cluster, func(set client.Object) bool {
		return metav1.IsControlledBy(set, s.Deployment)
	})
	return err
}

// readMachines lists the Machines of the deployment by their MachineSets.
func (c *Controller) readMachines(ctx context.Context, s *Snapshot) error {
	list := &clusterv1.MachineList{}
	err := c.client.List(ctx, list, client.InNamespace(s.Deployment.Namespace), client.MatchingFields{machinesByDeployment: s.Deployment.Name},
		client.UnsafeDisableDeepCopy)
	if err != nil {
		return fmt.Errorf("listing Machines: %w", err)
	}
	slices.SortFunc(list.Items, func(a, b clusterv1.Machine) int { return strings.Compare(a.Name, b.Name) })
	selectors := make([]labels.Selector, len(s.Sets))
	for i := range s.Sets {
		selectors[i] = selectorOf(s.Sets[i].Spec.Selector)
	}
	s.Machines = make(map[string][]clusterv1.Machine, len(s.Sets))
	for _, m := range list.Items {
		if m.Spec.ClusterName != s.Deployment.Spec.ClusterName {
			continue
		}
		if i := setOf(s.Sets, selectors, &m); i >= 0 {
			s.Machines[s.Sets[i].Name] = append(s.Machines[s.Sets[i].Name], m)
		} else {
			s.Strays = append(s.Strays, m)
		}
	}
	return nil
}

// setOf returns the place of the MachineSet that controls the Machine, or will adopt it; -1: none does.
func setOf(sets []clusterv1.MachineSet, selectors []labels.Selector, m *clusterv1.Machine) int {
	owner := metav1.GetControllerOf(m)
	for i := range sets {
		if owner != nil && owner.UID == sets[i].UID || owner == nil && selectors[i].Matches(labels.Set(m.Labels)) {
			return i
		}
	}
	return -1
}

func (c *Controller) readTemplates(ctx context.Context, s *Snapshot) error {
	if !s.Deployment.DeletionTimestamp.IsZero() {
		return nil // templates may not exist any more
	}
	refs := slices.DeleteFunc(references(s.Deployment), func(ref clusterv1.ContractVersionedObjectReference) bool { return !ref.IsDefined() })
	var err error
	s.Templates, err = clone.ReadTemplates(ctx, c.refs, s.Deployment, refs...)
	return err
}

// controls reports whether the deployment is the controller of the MachineSet.
func controls(d *clusterv1.MachineDeployment, set *clusterv1.MachineSet) bool {
	owner := metav1.GetControllerOf(set)
	return owner != nil && owner.UID == d.UID
}

// adoptable reports whether the MachineSet was the deployment's, as its labels say, and has no controller now, or one of the same name
// that does not exist any more (it was restored together with the reference).
func adoptable(d *clusterv1.MachineDeployment, set *clusterv1.MachineSet) bool {
	owner := metav1.GetControllerOf(set)
	former := owner != nil && owner.Kind == kind && owner.Name == d.Name && owner.UID != d.UID
	return (owner == nil || former) && set.Spec.ClusterName == d.Spec.ClusterName && set.DeletionTimestamp.IsZero() &&
		selectorOf(d.Spec.Selector).Matches(labels.Set(set.Labels))
}

// selectorOf returns the selector, one that selects nothing where it is empty or invalid.
func selectorOf(s metav1.LabelSelector) labels.Selector {
	selector, err := metav1.LabelSelectorAsSelector(&s)
	if err != nil || selector.Empty() {
		return labels.Nothing()
	}
	return selector
}

func groupOf(apiVersion string) string {
	group, _, _ := strings.Cut(apiVersion, "/")
	return group
}
