package inplace

import (
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// How MachineSets of one MachineDeployment hand a Machine over. Each step is one write, of one object, and what comes next follows
// from what the objects say then:
//
//	MachineDeployment    MachineSets             Machine
//	old ──► new          move-to, receive-from
//	                     old hands over          owner new, Moving            its replicas: neither's
//	counts it            acknowledged, replicas
//	                     new begins              Triggering ─► Updating       its replicas: new's

// MostNamed is how many Machines, or MachineSets, the annotations of a MachineSet name: others follow.
const MostNamed = 100

// longestList is how long an annotation may be that is read.
const longestList = 64 << 10

// MoveTo names the MachineSet that a MachineSet hands over its surplus Machines to; empty: it deletes them.
func MoveTo(set *clusterv1.MachineSet) string {
	return strings.TrimSpace(set.Annotations[clusterv1.MachineSetMoveMachinesToMachineSetAnnotation])
}

// ReceiveFrom names the MachineSets that hand over Machines to a MachineSet.
func ReceiveFrom(set *clusterv1.MachineSet) []string {
	return names(set.Annotations[clusterv1.MachineSetReceiveMachinesFromMachineSetsAnnotation])
}

// Acknowledged names the Machines that were handed over to a MachineSet and that its replicas count.
func Acknowledged(set *clusterv1.MachineSet) []string {
	return names(set.Annotations[clusterv1.AcknowledgedMoveAnnotation])
}

// List is the value of an annotation that names objects.
func List(names []string) string { return strings.Join(names, ",") }

// names are the distinct names in a list; of one that is longer than any that is written, none.
func names(list string) []string {
	if len(list) > longestList {
		return nil
	}
	var out []string
	for name := range strings.SplitSeq(list, ",") {
		if name = strings.TrimSpace(name); name != "" {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// IsAwaitingCount reports whether a Machine was handed over to the MachineSet and is not among its replicas yet.
func IsAwaitingCount(set *clusterv1.MachineSet, m *clusterv1.Machine) bool {
	return StateOf(m) == Moving && !slices.Contains(Acknowledged(set), m.Name)
}

// HasNotBegun reports whether a Machine is to be updated by the MachineSet that counts it, which has not written yet what the Machine
// shall be. It may as well be handed over to another.
func HasNotBegun(set *clusterv1.MachineSet, m *clusterv1.Machine) bool {
	state := StateOf(m)
	return state == Triggering || state == Moving && !IsAwaitingCount(set, m)
}

// MoveProblem says why a MachineSet cannot hand over Machines to another, nil: it does not exist. Both have to be of one
// MachineDeployment and Cluster, and both have to say so: the annotations are writable by any user of the namespace. Empty: it can.
func MoveProblem(from, to *clusterv1.MachineSet) string {
	name := MoveTo(from)
	switch {
	case to == nil:
		return fmt.Sprintf("MachineSet %s does not exist", name)
	case to.UID == from.UID:
		return "it is the MachineSet itself"
	case !to.DeletionTimestamp.IsZero():
		return fmt.Sprintf("MachineSet %s is being deleted", name)
	case to.Namespace != from.Namespace || to.Spec.ClusterName != from.Spec.ClusterName || !sameController(from, to):
		return fmt.Sprintf("MachineSet %s is not of the same MachineDeployment", name)
	case !slices.Contains(ReceiveFrom(to), from.Name):
		return fmt.Sprintf("MachineSet %s does not receive Machines from it", name)
	}
	return ""
}

func sameController(a, b *clusterv1.MachineSet) bool {
	x, y := metav1.GetControllerOfNoCopy(a), metav1.GetControllerOfNoCopy(b)
	return x != nil && y != nil && x.UID == y.UID
}
