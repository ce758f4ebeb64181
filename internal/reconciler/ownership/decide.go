package ownership

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/slipwayhq/slipway/internal/condition"
)

// Reasons of decisions to wait. The controllers report them in conditions, so their values must not change.
const (
	ReasonClusterMissing   = "ClusterNotFound"
	reasonParentMissing    = "WaitingForOwner"
	ReasonAdopting         = "AdoptingChildren"
	ReasonConflictingChild = "WaitingForOwnership"
	ReasonChildMissing     = "WaitingForChildren"
	ReasonWorkloadUnknown  = "WaitingForWorkloadCluster"
	reasonMachineMissing   = "WaitingForMachines"
	ReasonHidden           = "WaitingForWatchLabel"
)

// ReasonNodesAmbiguous is the reason of a Machine's Node conditions if several Nodes have its provider ID. Unlike with
// other reasons for an unknown Node, the workload cluster was reachable. The Machine controller sets it, and the
// MachineDeployment controller reads it. The MachinePool controller waits with the same reason.
const ReasonNodesAmbiguous = "ProviderIDNotUnique"

// Input is the input of [Decide]. The MachineSet and MachineDeployment controllers fill it.
type Input struct {
	// Kind and Name of the owner are used in messages.
	Kind, Name string
	// Cluster is the name of its Cluster; ClusterExists is set if the Cluster exists.
	Cluster       string
	ClusterExists bool
	// Parent is the owner that a label names, such as "MachineDeployment md", or empty. Owned is set if the object
	// has a controller of that kind.
	Parent string
	Owned  bool
	// Observed is set if a reconciliation with complete ownership was recorded.
	Observed bool
	// Children are the objects that match the selector or name this object in a label. All are of one kind.
	Children []Child
	// MissingChildren are children, such as "MachineSet ms", that do not exist although grandchildren name them.
	MissingChildren []string
	// Hidden are children, such as "Machine m", that lack the owner's watch label and may therefore be reconciled
	// by another manager.
	Hidden []string
	// Workload is used only if no reconciliation with complete ownership was recorded.
	Workload Workload
}

// Child is a possible child of the owner. The controllers fill it from the objects in their cache.
type Child struct {
	Kind, Name string
	// Selected is set if its labels match the selector.
	Selected bool
	// Controller is the child's controller.
	Controller Controller
	// Deleting children are never adopted and never waited for.
	Deleting bool
}

// Controller classifies the controller of a child. [ControllerOfChild] and the controllers set it in a [Child].
type Controller int

const (
	// NoController means that the child has no controller.
	NoController Controller = iota
	// ThisController means that the owner controls the child.
	ThisController
	// otherController means that another object controls the child.
	otherController
)

// Workload is the observed state of the workload cluster. Package machines reads it from the Nodes.
type Workload struct {
	// NodesRead is set if its Nodes were read.
	NodesRead bool
	// Problem explains in a message why the Nodes were not read.
	Problem string
	// OrphanedNodes are Nodes of Machines that this object owned and that do not exist; see [OrphanedNodes].
	OrphanedNodes []string
}

// Decision is the result of [Decide]. The zero value means that the owner may continue. Controllers convert it to a
// wait with machines.AwaitOwnership.
type Decision struct {
	// Adopt lists the children to adopt, in order. Nothing else may be done in the same reconciliation.
	Adopt []string
	// Reason and Message describe the wait; both are empty if there is none.
	Reason, Message string
	// On lists the objects that the wait depends on, such as "Machine m". Field is their field that has to change;
	// if it is empty, they have to be created. NeedsUser is set if a user has to follow the message.
	On        []string
	Field     string
	NeedsUser bool
	// Recheck is the interval to evaluate again if no watch reports the end of the wait, otherwise zero.
	Recheck time.Duration
}

// ownersField is the field that an adoption changes.
const ownersField = "metadata.ownerReferences"

// hiddenRecheck is the interval to check again for objects outside the manager's scope.
const hiddenRecheck = 30 * time.Second

// IsComplete reports whether ownership is complete, so that children may be created and deleted. The MachineSet and
// MachineDeployment controllers check it before they act.
func (v Decision) IsComplete() bool { return v.Reason == "" }

// Decide decides whether to continue, what to adopt, or what to wait for. The MachineSet and MachineDeployment
// controllers call it in each reconciliation and plan nothing else unless the decision is to continue. It is pure. The
// package documentation contains the decision table; its order matters.
func Decide(f Input) Decision {
	me := f.Kind + " " + f.Name
	adopt, foreign := classifyChildren(f.Children)
	switch {
	case !f.ClusterExists:
		return Decision{Reason: ReasonClusterMissing, On: []string{"Cluster " + f.Cluster}, Message: fmt.Sprintf(
			"Cluster %s does not exist; reconciliation of %s resumes when it does", f.Cluster, me)}
	case f.Parent != "" && !f.Owned:
		return Decision{Reason: reasonParentMissing, On: []string{me}, Field: ownersField, Message: fmt.Sprintf(
			"%s is labelled as part of %s, which has not adopted it yet", me, f.Parent)}
	case len(f.Hidden) > 0:
		return Decision{Reason: ReasonHidden, On: f.Hidden, NeedsUser: true, Recheck: hiddenRecheck, Message: fmt.Sprintf(
			"%s of %s: without the label %s that %s has; give it to them, or remove it from the owner",
			condition.Names(f.Hidden), me, clusterv1.WatchLabel, me)}
	case len(adopt) > 0:
		v := Decision{Adopt: adopt, Reason: ReasonAdopting, Field: ownersField, Message: fmt.Sprintf("Adopting %s", condition.Names(adopt))}
		for _, name := range adopt {
			v.On = append(v.On, f.Children[0].Kind+" "+name)
		}
		return v
	case len(foreign) > 0:
		return Decision{Reason: ReasonConflictingChild, On: foreign, NeedsUser: true, Message: fmt.Sprintf(
			"%s: labelled as part of %s, which cannot adopt it: correct its labels or its owner", condition.Names(foreign), me)}
	case len(f.MissingChildren) > 0:
		return Decision{Reason: ReasonChildMissing, On: f.MissingChildren, NeedsUser: true, Message: fmt.Sprintf(
			"%s of %s does not exist although Machines name it: restore it, or delete those Machines", condition.Names(f.MissingChildren), me)}
	case f.Observed:
		return Decision{}
	case !f.Workload.NodesRead:
		return Decision{Reason: ReasonWorkloadUnknown, On: []string{"Cluster " + f.Cluster},
			Field: "condition " + clusterv1.ClusterRemoteConnectionProbeCondition, Message: fmt.Sprintf(
				"Machines are created once the workload cluster has been seen: %s", f.Workload.Problem)}
	case len(f.Workload.OrphanedNodes) > 0:
		v := Decision{Reason: reasonMachineMissing, NeedsUser: true, Message: fmt.Sprintf(
			"Nodes of Machines that do not exist belong to %s: restore the Machines, or delete Nodes %s", me, condition.Names(f.Workload.OrphanedNodes))}
		for _, node := range f.Workload.OrphanedNodes {
			v.On = append(v.On, "Node "+node)
		}
		return v
	}
	return Decision{}
}

// classifyChildren returns the names of the children to adopt and of the children that block the owner.
func classifyChildren(children []Child) (adopt, foreign []string) {
	for _, c := range children {
		switch {
		case c.Controller == ThisController, c.Deleting:
		case c.Controller == NoController && c.Selected:
			adopt = append(adopt, c.Name)
		default:
			foreign = append(foreign, c.Kind+" "+c.Name)
		}
	}
	slices.Sort(adopt)
	slices.Sort(foreign)
	return adopt, foreign
}

// ControllerOf returns who controls o from the point of view of the object with the UID self. [ControllerOfChild] and
// package machines/clone call it.
func ControllerOf(o metav1.Object, self types.UID) Controller {
	owner := metav1.GetControllerOfNoCopy(o)
	switch {
	case owner == nil:
		return NoController
	case owner.UID == self:
		return ThisController
	}
	return otherController
}

// OrphanedNodes returns the sorted names of Nodes whose annotations name a Machine that does not exist and belonged to
// a MachineSet of this owner. The annotations are Cluster API's; the Machine controller sets them.
// machines.ReadOrphanedNodes calls it for [Input].Workload.
func OrphanedNodes(cluster types.NamespacedName, nodes []corev1.Node, ours, exists func(name string) bool) []string {
	var out []string
	for i := range nodes {
		a := nodes[i].Annotations
		machine := a[clusterv1.MachineAnnotation]
		if machine == "" || a[clusterv1.ClusterNameAnnotation] != cluster.Name || a[clusterv1.ClusterNamespaceAnnotation] != cluster.Namespace {
			continue
		}
		if a[clusterv1.OwnerKindAnnotation] == "MachineSet" && ours(a[clusterv1.OwnerNameAnnotation]) && !exists(machine) {
			out = append(out, nodes[i].Name)
		}
	}
	slices.Sort(out)
	return out
}
