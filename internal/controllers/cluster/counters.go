package cluster

import (
	"reflect"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"k8s.io/utils/ptr"

	"github.com/slipwayhq/slipway/internal/condition"
	"github.com/slipwayhq/slipway/internal/version"
)

// tally sums replicas over the objects of a Cluster, for the counters in its status ([report]).
type tally struct {
	desired, replicas, upToDate, ready, available int32
	versions                                      version.Counts
}

func newTally() tally { return tally{versions: version.Counts{}} }

// machine adds a Machine that is not counted by an owner other than the Cluster.
func (t *tally) machine(m *clusterv1.Machine) {
	set := condition.Set(m.Status.Conditions)
	t.desired++
	t.replicas++
	t.ready += boolCount(set.IsTrue(clusterv1.MachineReadyCondition))
	t.available += boolCount(set.IsTrue(clusterv1.MachineAvailableCondition))
	t.upToDate += boolCount(set.IsTrue(clusterv1.MachineUpToDateCondition))
	running := m.Spec.Version
	if m.Status.NodeInfo != nil {
		running = m.Status.NodeInfo.KubeletVersion
	}
	t.versions.Add(running, 1)
}

// group contains the counters that MachineDeployments, MachinePools and MachineSets have in common.
type group struct {
	desired, replicas, upToDate, ready, available *int32
	versions                                      []clusterv1.StatusVersion
}

func (t *tally) group(g group) {
	t.desired += ptr.Deref(g.desired, 0)
	t.replicas += ptr.Deref(g.replicas, 0)
	t.upToDate += ptr.Deref(g.upToDate, 0)
	t.ready += ptr.Deref(g.ready, 0)
	t.available += ptr.Deref(g.available, 0)
	for _, v := range g.versions {
		t.versions.Add(v.Version, v.Replicas)
	}
}

// workersStatus sums up MachineDeployments, MachinePools, and standalone MachineSets and Machines. [report] writes them
// to status.workers.
func workersStatus(s snapshot) *clusterv1.WorkersStatus {
	t := newTally()
	for _, d := range s.Deployments {
		t.group(group{d.Spec.Replicas, d.Status.Replicas, d.Status.UpToDateReplicas, d.Status.ReadyReplicas, d.Status.AvailableReplicas, d.Status.Versions})
	}
	for _, p := range s.Pools {
		t.group(group{p.Spec.Replicas, p.Status.Replicas, p.Status.UpToDateReplicas, p.Status.ReadyReplicas, p.Status.AvailableReplicas, p.Status.Versions})
	}
	for i, m := range s.Sets {
		if standalone(&s.Sets[i]) {
			t.group(group{m.Spec.Replicas, m.Status.Replicas, m.Status.UpToDateReplicas, m.Status.ReadyReplicas, m.Status.AvailableReplicas, m.Status.Versions})
		}
	}
	for _, m := range s.machines(false) {
		if standalone(m) {
			t.machine(m)
		}
	}
	return &clusterv1.WorkersStatus{
		DesiredReplicas: &t.desired, Replicas: &t.replicas, UpToDateReplicas: &t.upToDate,
		ReadyReplicas: &t.ready, AvailableReplicas: &t.available, Versions: t.versions.Sorted(),
	}
}

// controlPlaneStatus returns the counters of the control plane object, or counts the Machines of a control plane
// without such an object. It returns nil if nothing is known. [report] writes it to status.controlPlane.
func controlPlaneStatus(s snapshot) *clusterv1.ClusterControlPlaneStatus {
	if s.Cluster.Spec.ControlPlaneRef.IsDefined() {
		v := s.ControlPlane
		status := clusterv1.ClusterControlPlaneStatus{
			DesiredReplicas: optionalCount(v.SpecReplicas.Get()), Replicas: optionalCount(v.Replicas.Get()), UpToDateReplicas: optionalCount(v.UpToDateReplicas.Get()),
			ReadyReplicas: optionalCount(v.ReadyReplicas.Get()), AvailableReplicas: optionalCount(v.AvailableReplicas.Get()),
			Versions: v.Versions.Or(nil),
		}
		if reflect.ValueOf(status).IsZero() {
			return nil // the control plane object reports no counters
		}
		return &status
	}
	machines := s.machines(true)
	if len(machines) == 0 {
		return nil
	}
	t := newTally()
	for _, m := range machines {
		t.machine(m)
	}
	return &clusterv1.ClusterControlPlaneStatus{
		DesiredReplicas: &t.desired, Replicas: &t.replicas, UpToDateReplicas: &t.upToDate,
		ReadyReplicas: &t.ready, AvailableReplicas: &t.available, Versions: t.versions.Sorted(),
	}
}

func optionalCount(n int32, ok bool) *int32 {
	if !ok {
		return nil
	}
	return &n
}

func boolCount(b bool) int32 {
	if b {
		return 1
	}
	return 0
}
