package summary

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/slipwayhq/slipway/internal/condition"
	"github.com/slipwayhq/slipway/internal/machines"
	"github.com/slipwayhq/slipway/internal/version"
)

// NewFor is how long a Machine without an UpToDate condition is not reported as one that lacks it.
const NewFor = 10 * time.Second

// Machines are those of one owner.
type Machines []*clusterv1.Machine

// Counts are Machines by how far they are.
type Counts struct{ Replicas, Ready, Available, UpToDate int32 }

// Count counts the Machines by their conditions; those that are being deleted count, too.
func (ms Machines) Count() Counts {
	n := Counts{Replicas: int32(len(ms))}
	count := func(yes bool, into *int32) {
		if yes {
			*into++
		}
	}
	for _, m := range ms {
		set := condition.Set(m.Status.Conditions)
		count(set.IsTrue(clusterv1.MachineReadyCondition), &n.Ready)
		count(set.IsTrue(clusterv1.MachineAvailableCondition), &n.Available)
		count(set.IsTrue(clusterv1.MachineUpToDateCondition), &n.UpToDate)
	}
	return n
}

// Versions counts the versions that the Machines have by their spec.
func (ms Machines) Versions() []clusterv1.StatusVersion {
	n := version.Counts{}
	for _, m := range ms {
		n.Add(m.Spec.Version, 1)
	}
	return n.Sorted()
}

// Members are the Machines as an aggregation of conditions takes them.
func (ms Machines) Members() []condition.Member {
	out := make([]condition.Member, 0, len(ms))
	for _, m := range ms {
		out = append(out, condition.Member{Kind: "Machine", Name: m.Name, Conditions: m.Status.Conditions, Deleted: m.DeletionTimestamp})
	}
	return out
}

// Names of the Machines.
func (ms Machines) Names() []string {
	var out []string
	for _, m := range ms {
		out = append(out, m.Name)
	}
	return out
}

// Ready is the condition MachinesReady.
func (ms Machines) Ready() condition.Verdict {
	if len(ms) == 0 {
		return condition.True(clusterv1.NoReplicasReason)
	}
	return condition.Aggregate(ms.Members(), condition.Part{Type: clusterv1.MachineReadyCondition}, condition.Reasons{
		Good: clusterv1.ReadyReason, Bad: clusterv1.NotReadyReason, Unknown: clusterv1.ReadyUnknownReason,
	})
}

// UpToDate is the condition MachinesUpToDate. Machines that are too new to have the condition are left out.
func (ms Machines) UpToDate(now time.Time) condition.Verdict {
	var judged Machines
	for _, m := range ms {
		if condition.Set(m.Status.Conditions).Get(clusterv1.MachineUpToDateCondition) != nil || now.Sub(m.CreationTimestamp.Time) >= NewFor {
			judged = append(judged, m)
		}
	}
	if len(judged) == 0 {
		return condition.True(clusterv1.NoReplicasReason)
	}
	return condition.Aggregate(judged.Members(), condition.Part{Type: clusterv1.MachineUpToDateCondition}, condition.Reasons{
		Good: clusterv1.UpToDateReason, Bad: clusterv1.NotUpToDateReason, Unknown: clusterv1.UpToDateUnknownReason,
	})
}

// ScalingUp is the condition ScalingUp of an owner that shall have so many replicas; blockers say why none can be created, a line each.
func (ms Machines) ScalingUp(desired int, blockers []string) condition.Verdict {
	list := ""
	for _, line := range blockers {
		list += "\n* " + line
	}
	switch {
	case len(ms) < desired && list != "":
		list = " is blocked because:" + list
		fallthrough
	case len(ms) < desired:
		return condition.TrueBecause(clusterv1.ScalingUpReason, fmt.Sprintf("Scaling up from %d to %d replicas%s", len(ms), desired, list))
	case list != "" && desired > 0:
		list = "Scaling up would be blocked because:" + list
	default:
		list = ""
	}
	return condition.False(clusterv1.NotScalingUpReason, list)
}

// ScalingDown is the condition ScalingDown of an owner that shall have so many replicas.
func (ms Machines) ScalingDown(desired int, now time.Time) condition.Verdict {
	if len(ms) <= desired {
		return condition.False(clusterv1.NotScalingDownReason, "")
	}
	return condition.TrueBecause(clusterv1.ScalingDownReason,
		ms.WithLingering(fmt.Sprintf("Scaling down from %d to %d replicas", len(ms), desired), now))
}

// WithLingering adds to a message a line about the Machines whose deletion takes long, if there are any.
func (ms Machines) WithLingering(message string, now time.Time) string {
	if late := condition.Lingering(ms.Members(), now); late != "" {
		message += "\n* " + late
	}
	return message
}

// Remediating is the condition Remediating: True while a health check asks for the replacement of a Machine.
func (ms Machines) Remediating() condition.Verdict {
	var replaced Machines
	for _, m := range ms {
		set := condition.Set(m.Status.Conditions)
		if set.IsFalse(clusterv1.MachineHealthCheckSucceededCondition) && set.IsFalse(clusterv1.MachineOwnerRemediatedCondition) {
			replaced = append(replaced, m)
		}
	}
	if len(replaced) == 0 {
		return condition.False(clusterv1.NotRemediatingReason, "")
	}
	v := condition.Aggregate(replaced.Members(), condition.Part{Type: clusterv1.MachineOwnerRemediatedCondition}, condition.Reasons{})
	return condition.TrueBecause(clusterv1.RemediatingReason, v.Message)
}

// RemediatingOrUnhealthy is the condition Remediating, which names unhealthy Machines whose replacement is not asked for where no other
// Machine is replaced.
func (ms Machines) RemediatingOrUnhealthy() condition.Verdict {
	v := ms.Remediating()
	if v.Status == metav1.ConditionTrue {
		return v
	}
	var unhealthy []string
	for _, m := range ms {
		if condition.Set(m.Status.Conditions).IsFalse(clusterv1.MachineHealthCheckSucceededCondition) {
			unhealthy = append(unhealthy, m.Name)
		}
	}
	if len(unhealthy) > 0 {
		v.Message = machines.NamesText(unhealthy) + " not healthy, and their replacement is not asked for"
	}
	return v
}

// Deleting is the condition Deleting of an owner that is deleted after its Machines.
func (ms Machines) Deleting(now time.Time) condition.Verdict {
	message := fmt.Sprintf("Deleting %d Machines", len(ms))
	switch len(ms) {
	case 0:
		message = "Deletion completed"
	case 1:
		message = "Deleting 1 Machine"
	}
	return condition.TrueBecause(clusterv1.DeletingReason, ms.WithLingering(message, now))
}

// Resized is the condition Resized of v1beta1.
func (ms Machines) Resized(desired int) condition.Verdict {
	switch have := len(ms); {
	case have < desired:
		return condition.False(clusterv1.ScalingUpV1Beta1Reason, fmt.Sprintf("Scaling up to %d replicas (actual %d)", desired, have))
	case have > desired:
		return condition.False(clusterv1.ScalingDownV1Beta1Reason, fmt.Sprintf("Scaling down to %d replicas (actual %d)", desired, have))
	}
	return condition.True("Resized")
}

// CountNodes counts the Machines whose Nodes are ready, and those of them that are available, as v1beta1 does.
func (ms Machines) CountNodes() (ready, available int32) {
	for _, m := range ms {
		set := condition.Set(m.Status.Conditions)
		if !set.IsTrue(clusterv1.MachineNodeReadyCondition) {
			continue
		}
		ready++
		if set.IsTrue(clusterv1.MachineAvailableCondition) {
			available++
		}
	}
	return ready, available
}
