package progress

import (
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/slipwayhq/slipway/internal/operate/describe"
)

// Deletion returns the steps of a cluster deletion for `slipway delete cluster`, in the order in which its parts are
// deleted. first is the snapshot at the start of the wait, last the current one; it has no Cluster once the Cluster is
// gone.
func Deletion(first, last describe.Snapshot) []Step {
	gone := last.Cluster == nil
	steps := []Step{}
	if len(first.Machines)+len(first.Pools)+len(first.Deployments)+len(first.Sets) > 0 {
		steps = append(steps, workersGone(last))
	}
	if ref := first.Cluster.Spec.ControlPlaneRef; ref.IsDefined() {
		steps = append(steps, partGone("control plane", ref, last))
	}
	if ref := first.Cluster.Spec.InfrastructureRef; ref.IsDefined() {
		steps = append(steps, partGone("infrastructure", ref, last))
	}
	step := Step{Name: "cluster", Done: gone, DoneWhen: "Cluster " + first.Cluster.Name + " is gone"}
	if !gone {
		step.Detail = deletionMessage(last.Cluster.Status.Conditions)
	}
	if !done(steps) {
		step.Detail = "" // the detail would repeat the other steps
	}
	return append(steps, step)
}

func workersGone(s describe.Snapshot) Step {
	groups := len(s.Deployments) + len(s.Sets) + len(s.Pools)
	step := Step{Name: "workers", Done: len(s.Machines)+groups == 0, DoneWhen: "their nodes are removed"}
	if step.Done {
		return step
	}
	step.Detail = count(len(s.Machines), "Machine") + " left"
	if len(s.Machines) == 0 {
		step.Detail = count(groups, "group") + " left"
		for _, p := range s.Pools {
			if why := deletionMessage(p.Status.Conditions); why != "" {
				step.Detail = "MachinePool " + p.Name + ": " + why
			}
		}
	}
	for _, m := range s.Machines {
		if why := deletionMessage(m.Status.Conditions); why != "" {
			step.Detail += "; Machine " + m.Name + ": " + why
			break
		}
	}
	return step
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

func partGone(name string, ref clusterv1.ContractVersionedObjectReference, s describe.Snapshot) Step {
	step := Step{Name: name, DoneWhen: ref.Kind + " " + ref.Name + " is gone"}
	o := s.Objects[describe.Ref{Group: ref.APIGroup, Kind: ref.Kind, Name: ref.Name}]
	if o == nil {
		step.Done = true
		return step
	}
	b := builder{s, describe.Build(s, describe.Options{})}
	if row := b.root.Find(ref.Kind, ref.Name); row != nil {
		step.Detail = join(b.ownIssues(row))
	}
	return step
}

// deletionMessage returns the message of the Deleting condition.
func deletionMessage(conditions []metav1.Condition) string {
	c := meta.FindStatusCondition(conditions, clusterv1.DeletingCondition)
	if c == nil || c.Status != metav1.ConditionTrue {
		return ""
	}
	return flat(c.Message)
}
