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

	"github.com/slipwayhq/slipway/internal/kube"
	"github.com/slipwayhq/slipway/internal/machines/clone"
	"github.com/slipwayhq/slipway/internal/machines/inplace"
)

// kind is the kind that the controller reconciles.
const kind = "MachineDeployment"

// forgetAfter is when a created MachineSet that the cache never showed must have been deleted again.
const forgetAfter = time.Minute

// snapshot is the input of all decisions about a MachineDeployment. observe fills it.
type snapshot struct {
	Now        time.Time
	Deployment *clusterv1.MachineDeployment
	// Cluster is nil if it does not exist.
	Cluster *clusterv1.Cluster
	// Sets are the MachineSets that the deployment controls or may adopt, sorted by name.
	Sets []clusterv1.MachineSet
	// Machines contains the Machines of each MachineSet by its name, sorted by name.
	Machines map[string][]clusterv1.Machine
	// OrphanedMachines are Machines of the deployment whose MachineSet does not exist, sorted by name.
	OrphanedMachines []clusterv1.Machine
	// Templates are the templates for new Machines, infrastructure first. References that are not set are omitted.
	Templates clone.Templates
	// Hidden are MachineSets of the deployment that are outside the manager's scope because they lack its watch
	// label.
	Hidden []string
	// InPlace contains for each old MachineSet whether its Machines can be updated in place. It is nil until Decide
	// requests it.
	InPlace map[string]inplace.UpdateCheck
	// Stale is true while the cache does not show this controller's last writes to its MachineSets.
	Stale bool
	Settings
}

// observe reads the snapshot of a MachineDeployment. Package reconciler calls it at the beginning of each
// reconciliation.
func (c *controller) observe(ctx context.Context, d *clusterv1.MachineDeployment) (snapshot, error) {
	s := snapshot{Now: c.now(), Deployment: d, Settings: c.settings}
	for _, step := range []func(context.Context, *snapshot) error{c.readCluster, c.readSets, c.readHidden, c.readMachines, c.readTemplates} {
		if err := step(ctx, &s); err != nil {
			return s, err
		}
	}
	return s, nil
}

func (c *controller) readCluster(ctx context.Context, s *snapshot) (err error) {
	s.Cluster, err = kube.GetCluster(ctx, c.client, client.ObjectKey{Namespace: s.Deployment.Namespace, Name: s.Deployment.Spec.ClusterName})
	return err
}

func (c *controller) readSets(ctx context.Context, s *snapshot) error {
	list := &clusterv1.MachineSetList{}
	err := c.client.List(ctx, list, client.InNamespace(s.Deployment.Namespace), client.MatchingFields{setsByCluster: s.Deployment.Spec.ClusterName},
		client.UnsafeDisableDeepCopy) // objects in a snapshot are never modified
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

// readHidden searches for MachineSets of the deployment that lack the manager's watch label, if the other
// MachineSets do not account for all replicas.
func (c *controller) readHidden(ctx context.Context, s *snapshot) (err error) {
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

// readMachines lists the Machines of the deployment by MachineSet.
func (c *controller) readMachines(ctx context.Context, s *snapshot) error {
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
			s.OrphanedMachines = append(s.OrphanedMachines, m)
		}
	}
	return nil
}

// setOf returns the index of the MachineSet that controls the Machine or will adopt it, or -1.
func setOf(sets []clusterv1.MachineSet, selectors []labels.Selector, m *clusterv1.Machine) int {
	owner := metav1.GetControllerOf(m)
	for i := range sets {
		if owner != nil && owner.UID == sets[i].UID || owner == nil && selectors[i].Matches(labels.Set(m.Labels)) {
			return i
		}
	}
	return -1
}

func (c *controller) readTemplates(ctx context.Context, s *snapshot) error {
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

// adoptable reports whether the deployment may adopt the MachineSet: the labels match, and the MachineSet has no
// controller, or its controller reference has the deployment's name and another UID because both were restored.
func adoptable(d *clusterv1.MachineDeployment, set *clusterv1.MachineSet) bool {
	owner := metav1.GetControllerOf(set)
	former := owner != nil && owner.Kind == kind && owner.Name == d.Name && owner.UID != d.UID
	return (owner == nil || former) && set.Spec.ClusterName == d.Spec.ClusterName && set.DeletionTimestamp.IsZero() &&
		selectorOf(d.Spec.Selector).Matches(labels.Set(set.Labels))
}

// selectorOf returns the selector. An empty or invalid selector selects nothing.
func selectorOf(s metav1.LabelSelector) labels.Selector {
	selector, err := metav1.LabelSelectorAsSelector(&s)
	if err != nil || selector.Empty() {
		return labels.Nothing()
	}
	return selector
}

// groupOf returns the API group of an apiVersion; the watch of MachineSets compares it.
func groupOf(apiVersion string) string {
	group, _, _ := strings.Cut(apiVersion, "/")
	return group
}
