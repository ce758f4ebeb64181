package machines

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/slipwayhq/slipway/internal/condition"
	"github.com/slipwayhq/slipway/internal/version"
)

// NewMachineGrace is how long a new Machine may lack an UpToDate condition before that is reported.
const NewMachineGrace = 10 * time.Second

// List are the Machines of one owner. Its methods compute counters and conditions for the status of MachineSets,
// MachineDeployments and control planes. The reasons are Cluster API's. The controllers of these owners call them when
// they compute the status.
type List []*clusterv1.Machine

// ReplicaCounts are numbers of Machines by state. [List.Count] returns them.
type ReplicaCounts struct{ Replicas, Ready, Available, UpToDate int32 }

// Count counts the Machines by their conditions, including Machines that are being deleted.
func (ms List) Count() ReplicaCounts {
	n := ReplicaCounts{Replicas: int32(len(ms))}
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

// Versions counts the Machines by the version in their spec.
func (ms List) Versions() []clusterv1.StatusVersion {
	n := version.Counts{}
	for _, m := range ms {
		n.Add(m.Spec.Version, 1)
	}
	return n.Sorted()
}

// Members returns the Machines for an aggregation of conditions.
func (ms List) Members() []condition.AggregateMember {
	out := make([]condition.AggregateMember, 0, len(ms))
	for _, m := range ms {
		out = append(out, condition.AggregateMember{Kind: "Machine", Name: m.Name, Conditions: m.Status.Conditions, Deleted: m.DeletionTimestamp})
	}
	return out
}

// Names returns the names of the Machines.
func (ms List) Names() []string {
	var out []string
	for _, m := range ms {
		out = append(out, m.Name)
	}
	return out
}

// Ready computes the MachinesReady condition.
func (ms List) Ready() condition.Result {
	if len(ms) == 0 {
		return condition.True(clusterv1.NoReplicasReason)
	}
	return condition.Aggregate(ms.Members(), condition.Part{Type: clusterv1.MachineReadyCondition}, condition.Reasons{
		Info: clusterv1.ReadyReason, Issue: clusterv1.NotReadyReason, Unknown: clusterv1.ReadyUnknownReason,
	})
}

// UpToDate computes the MachinesUpToDate condition. It ignores Machines that are too new to have an UpToDate
// condition.
func (ms List) UpToDate(now time.Time) condition.Result {
	var judged List
	for _, m := range ms {
		if condition.Set(m.Status.Conditions).Get(clusterv1.MachineUpToDateCondition) != nil || now.Sub(m.CreationTimestamp.Time) >= NewMachineGrace {
			judged = append(judged, m)
		}
	}
	if len(judged) == 0 {
		return condition.True(clusterv1.NoReplicasReason)
	}
	return condition.Aggregate(judged.Members(), condition.Part{Type: clusterv1.MachineUpToDateCondition}, condition.Reasons{
		Info: clusterv1.UpToDateReason, Issue: clusterv1.NotUpToDateReason, Unknown: clusterv1.UpToDateUnknownReason,
	})
}

// ScalingUp computes the ScalingUp condition of an owner with this number of desired replicas. The blockers explain
// why no Machine can be created, one reason per line.
func (ms List) ScalingUp(desired int, blockers []string) condition.Result {
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

// ScalingDown computes the ScalingDown condition of an owner with this number of desired replicas.
func (ms List) ScalingDown(desired int, now time.Time) condition.Result {
	if len(ms) <= desired {
		return condition.False(clusterv1.NotScalingDownReason, "")
	}
	return condition.TrueBecause(clusterv1.ScalingDownReason,
		ms.WithLingering(fmt.Sprintf("Scaling down from %d to %d replicas", len(ms), desired), now))
}

// WithLingering appends a line about Machines whose deletion takes long, if there are any.
func (ms List) WithLingering(message string, now time.Time) string {
	if late := condition.Lingering(ms.Members(), now); late != "" {
		message += "\n* " + late
	}
	return message
}

// Remediating computes the Remediating condition, which is True while a health check requests the replacement of a
// Machine.
func (ms List) Remediating() condition.Result {
	var replaced List
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

// RemediatingOrUnhealthy computes the Remediating condition. If no Machine is being replaced, its message lists the
// unhealthy Machines whose replacement was not requested.
func (ms List) RemediatingOrUnhealthy() condition.Result {
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
		v.Message = NamesText(unhealthy) + " not healthy, and their replacement was not requested"
	}
	return v
}

// Deleting computes the Deleting condition of an owner that is deleted after its Machines.
func (ms List) Deleting(now time.Time) condition.Result {
	message := fmt.Sprintf("Deleting %d Machines", len(ms))
	switch len(ms) {
	case 0:
		message = "Deletion completed"
	case 1:
		message = "Deleting 1 Machine"
	}
	return condition.TrueBecause(clusterv1.DeletingReason, ms.WithLingering(message, now))
}

// Resized computes the v1beta1 Resized condition. The MachineSet controller calls it.
func (ms List) Resized(desired int) condition.Result {
	switch have := len(ms); {
	case have < desired:
		return condition.False(clusterv1.ScalingUpV1Beta1Reason, fmt.Sprintf("Scaling up to %d replicas (actual %d)", desired, have))
	case have > desired:
		return condition.False(clusterv1.ScalingDownV1Beta1Reason, fmt.Sprintf("Scaling down to %d replicas (actual %d)", desired, have))
	}
	return condition.True("Resized")
}

// CountNodes counts the Machines whose Nodes are ready, and those of them that are available, as v1beta1 defines
// it. The MachineSet controller calls it.
func (ms List) CountNodes() (ready, available int32) {
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
