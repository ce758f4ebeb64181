package inplace

import (
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// MachineSets of one MachineDeployment transfer a Machine in these steps. Each step is one write to one object, and
// the next step follows from the annotations of the objects, which are a protocol of Cluster API. The MachineDeployment
// and MachineSet controllers read them with the functions of this file:
//
//	MachineDeployment    MachineSets             Machine
//	old ──► new          move-to, receive-from
//	                     old transfers it        owner new, Moving            counted in neither's replicas
//	counts it            acknowledged, replicas
//	                     new starts the update   Triggering ─► Updating       counted in new's replicas

// MaxListedNames limits how many Machines or MachineSets an annotation of a MachineSet lists; the rest follow later.
// The MachineSet and MachineDeployment controllers write these annotations.
const MaxListedNames = 100

// longestList is the maximum length of an annotation value that is parsed.
const longestList = 64 << 10

// TransferTarget returns the name of the MachineSet to which a MachineSet transfers its surplus Machines. If it is
// empty, surplus Machines are deleted. The MachineSet and MachineDeployment controllers read it.
func TransferTarget(set *clusterv1.MachineSet) string {
	return strings.TrimSpace(set.Annotations[clusterv1.MachineSetMoveMachinesToMachineSetAnnotation])
}

// ReceiveFrom returns the names of the MachineSets that transfer Machines to a MachineSet. The MachineSet controller
// reads it.
func ReceiveFrom(set *clusterv1.MachineSet) []string {
	return names(set.Annotations[clusterv1.MachineSetReceiveMachinesFromMachineSetsAnnotation])
}

// acknowledged returns the names of the transferred Machines that are included in the replicas of a MachineSet.
func acknowledged(set *clusterv1.MachineSet) []string {
	return names(set.Annotations[clusterv1.AcknowledgedMoveAnnotation])
}

// List returns the value of an annotation that lists object names. The MachineDeployment controller writes it to the
// MachineSets of an in-place rollout.
func List(names []string) string { return strings.Join(names, ",") }

// names returns the distinct names in a list. It returns nil for a list longer than longestList.
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

// IsAwaitingCount reports whether a Machine was transferred to the MachineSet but is not included in its replicas
// yet. The MachineSet and MachineDeployment controllers call it.
func IsAwaitingCount(set *clusterv1.MachineSet, m *clusterv1.Machine) bool {
	return StateOf(m) == Moving && !slices.Contains(acknowledged(set), m.Name)
}

// AwaitsStart reports whether the MachineSet that counts the Machine has yet to write its desired state. Until then
// the Machine may be transferred to another MachineSet instead. The MachineSet and MachineDeployment controllers call
// it during an in-place rollout.
func AwaitsStart(set *clusterv1.MachineSet, m *clusterv1.Machine) bool {
	state := StateOf(m)
	return state == Triggering || state == Moving && !IsAwaitingCount(set, m)
}

// MoveProblem returns why a MachineSet cannot transfer Machines to another one, or an empty string. A nil target does
// not exist. Both must belong to the same MachineDeployment and Cluster, and both must have the annotations, because
// any user of the namespace can write these. The MachineSet controller calls it before it transfers Machines.
func MoveProblem(from, to *clusterv1.MachineSet) string {
	name := TransferTarget(from)
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
