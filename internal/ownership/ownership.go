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

// Reasons of verdicts that say to wait.
const (
	ReasonClusterMissing  = "ClusterNotFound"
	ReasonParentMissing   = "WaitingForOwner"
	ReasonAdopting        = "AdoptingChildren"
	ReasonForeign         = "WaitingForOwnership"
	ReasonChildMissing    = "WaitingForChildren"
	ReasonWorkloadUnknown = "WaitingForWorkloadCluster"
	ReasonMachineMissing  = "WaitingForMachines"
	ReasonHidden          = "WaitingForWatchLabel"
)

// ReasonNodesAmbiguous is the reason of a Machine's conditions about its Node where several Nodes have its provider ID. Unlike
// other reasons for which nothing is known of a Node, it says that the workload cluster has answered.
const ReasonNodesAmbiguous = "ProviderIDNotUnique"

// Facts is what a verdict looks at.
type Facts struct {
	// Kind and Name of the object that owns, for messages.
	Kind, Name string
	// Cluster is the name of its Cluster; ClusterExists tells whether it is there.
	Cluster       string
	ClusterExists bool
	// Parent is the owner that a label names, such as "MachineDeployment md"; empty: none. Owned tells whether the
	// object is controlled by one.
	Parent string
	Owned  bool
	// Observed: a pass with a whole graph is on record.
	Observed bool
	// Children are the objects that match the selector or name this object in a label.
	Children []Child
	// Absent are children, such as "MachineSet ms", that do not exist although grandchildren name them.
	Absent []string
	// Hidden are children, such as "Machine m", that lack the watch label which the owner has: another manager may have them
	// in its hands.
	Hidden []string
	// Workload is only looked at where no pass is on record.
	Workload Workload
}

// Child is an object that may belong to the one that owns.
type Child struct {
	Kind, Name string
	// Selected: its labels match the selector.
	Selected bool
	// Controller tells who controls it.
	Controller Controller
	// Deleting children are never adopted, and not waited for.
	Deleting bool
}

// Controller tells who controls a child.
type Controller int

const (
	// No one controls it.
	Nobody Controller = iota
	// Self is the object that owns.
	Self
	// Other is another object.
	Other
)

// Workload is what is known of the workload cluster.
type Workload struct {
	// Seen: its Nodes were read.
	Seen bool
	// Problem is why they were not, for a message.
	Problem string
	// Strays are Nodes of Machines that this object owned and that do not exist; see [Strays].
	Strays []string
}

// Verdict is what may be done. The zero value is to go on.
type Verdict struct {
	// Adopt names children to adopt, in order; nothing else may be done in the pass.
	Adopt []string
	// Reason and Message say what is waited for; both empty: nothing.
	Reason, Message string
	// On are the objects that are waited for, such as "Machine m"; Field of them has to change, or they have to be created where
	// it is empty. Person: a person has to do what the message says.
	On     []string
	Field  string
	Person bool
	// Recheck is when to judge again where nothing may tell of what is waited for; zero: something does.
	Recheck time.Duration
}

// ownersField is what an adoption changes.
const ownersField = "metadata.ownerReferences"

// hiddenRecheck is when to look again for what the manager does not see.
const hiddenRecheck = 30 * time.Second

// Whole reports whether the graph of owners is whole, so that children may be made and removed.
func (v Verdict) Whole() bool { return v.Reason == "" }

// Judge says whether to go on, what to adopt, or what to wait for. The table is in the documentation of the package.
func Judge(f Facts) Verdict {
	me := f.Kind + " " + f.Name
	adopt, foreign := sort(f.Children)
	switch {
	case !f.ClusterExists:
		return Verdict{Reason: ReasonClusterMissing, On: []string{"Cluster " + f.Cluster}, Message: fmt.Sprintf(
			"Cluster %s does not exist; reconciliation of %s resumes when it does", f.Cluster, me)}
	case f.Parent != "" && !f.Owned:
		return Verdict{Reason: ReasonParentMissing, On: []string{me}, Field: ownersField, Message: fmt.Sprintf(
			"%s is labelled as part of %s, which has not adopted it yet", me, f.Parent)}
	case len(f.Hidden) > 0:
		return Verdict{Reason: ReasonHidden, On: f.Hidden, Person: true, Recheck: hiddenRecheck, Message: fmt.Sprintf(
			"%s of %s: without the label %s that %s has; give it to them, or remove it from the owner",
			condition.Names(f.Hidden), me, clusterv1.WatchLabel, me)}
	case len(adopt) > 0:
		v := Verdict{Adopt: adopt, Reason: ReasonAdopting, Field: ownersField, Message: fmt.Sprintf("Adopting %s", condition.Names(adopt))}
		for _, name := range adopt {
			v.On = append(v.On, f.Children[0].Kind+" "+name)
		}
		return v
	case len(foreign) > 0:
		return Verdict{Reason: ReasonForeign, On: foreign, Person: true, Message: fmt.Sprintf(
			"%s: labelled as part of %s, which cannot adopt it: correct its labels or its owner", condition.Names(foreign), me)}
	case len(f.Absent) > 0:
		return Verdict{Reason: ReasonChildMissing, On: f.Absent, Person: true, Message: fmt.Sprintf(
			"%s of %s does not exist although Machines name it: restore it, or delete those Machines", condition.Names(f.Absent), me)}
	case f.Observed:
		return Verdict{}
	case !f.Workload.Seen:
		return Verdict{Reason: ReasonWorkloadUnknown, On: []string{"Cluster " + f.Cluster},
			Field: "condition " + clusterv1.ClusterRemoteConnectionProbeCondition, Message: fmt.Sprintf(
				"Machines are created once the workload cluster has been seen: %s", f.Workload.Problem)}
	case len(f.Workload.Strays) > 0:
		v := Verdict{Reason: ReasonMachineMissing, Person: true, Message: fmt.Sprintf(
			"Nodes of Machines that do not exist belong to %s: restore the Machines, or delete Nodes %s", me, condition.Names(f.Workload.Strays))}
		for _, node := range f.Workload.Strays {
			v.On = append(v.On, "Node "+node)
		}
		return v
	}
	return Verdict{}
}

// sort returns the names of the children to adopt, and those that are in the way.
func sort(children []Child) (adopt, foreign []string) {
	for _, c := range children {
		switch {
		case c.Controller == Self, c.Deleting:
		case c.Controller == Nobody && c.Selected:
			adopt = append(adopt, c.Name)
		default:
			foreign = append(foreign, c.Kind+" "+c.Name)
		}
	}
	slices.Sort(adopt)
	slices.Sort(foreign)
	return adopt, foreign
}

// ControllerOf tells who controls o, seen from the object with the UID.
func ControllerOf(o metav1.Object, self types.UID) Controller {
	owner := metav1.GetControllerOfNoCopy(o)
	switch {
	case owner == nil:
		return Nobody
	case owner.UID == self:
		return Self
	}
	return Other
}

// Strays returns the names of the Nodes whose annotations name a Machine that does not exist, of a MachineSet
// that is ours, sorted.
func Strays(cluster types.NamespacedName, nodes []corev1.Node, ours, exists func(name string) bool) []string {
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
