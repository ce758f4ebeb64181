package describe_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/slipwayhq/slipway/internal/operate/describe"
	"github.com/slipwayhq/slipway/test/testkit"
)

// stuck is a rollout that cannot go on: everything is available, and nothing is up to date.
func stuck() describe.Snapshot {
	const old = "* Version v1.35.4, v1.36.3 required"
	rolling := "Rolling out 2 not up-to-date replicas\n* Version v1.35.4, v1.36.3 required\n* ExampleMachineTemplate md-2 does not exist\n* The rollout is paused by spec.paused"
	s := world()
	s.Cluster.Spec.Paused = nil
	s.Cluster.Status.Conditions = append(s.Cluster.Status.Conditions[:1],
		cond("Available", "True", "Available", "", time.Hour),
		cond("RollingOut", "True", "RollingOut", "* MachineDeployment md: "+strings.ReplaceAll(rolling, "\n", "\n  "), time.Minute),
		cond("WorkerMachinesUpToDate", "False", "NotUpToDate", "* Machines md-1-a, md-1-b:\n  "+old, time.Minute))
	s.Pools, s.Machines = nil, s.Machines[:3]
	d := &s.Deployments[0]
	d.Status.UpToDateReplicas = n(0)
	d.Status.Conditions = append(d.Status.Conditions,
		cond("MachinesUpToDate", "False", "NotUpToDate", "* Machines md-1-a, md-1-b:\n  "+old, time.Minute),
		cond("RollingOut", "True", "RollingOut", rolling, time.Minute),
		cond("ScalingUp", "False", "NotScalingUp", "Scaling up would be blocked because ExampleMachineTemplate md-2 does not exist", time.Minute))
	for i := 1; i < 3; i++ {
		s.Machines[i].Status.Conditions[2] = cond("UpToDate", "False", "NotUpToDate", old, time.Minute)
	}
	return s
}

// A rollout that is stuck is seen although everything is available, and said once.
func TestStuckRolloutIsShown(t *testing.T) {
	out := describe.Render(describe.Build(stuck(), describe.Options{Grouping: true}), describe.Style{Now: now(), Unicode: true})
	testkit.CompareGolden(t, "testdata/stuck.txt", out)
}

// A Cluster of a class of which nothing exists yet waits for one thing, which is said once.
func TestWaitForTopologyIsSaidOnce(t *testing.T) {
	const wait = "Waiting for the topology of the Cluster to be reconciled"
	s := world()
	s.Cluster.Spec = clusterv1.ClusterSpec{Topology: clusterv1.Topology{ClassRef: clusterv1.ClusterClassRef{Name: "class"}, Version: "v1.36.3"}}
	s.Cluster.Status = clusterv1.ClusterStatus{}
	s.Cluster.Status.Conditions = append(s.Cluster.Status.Conditions,
		cond("Available", "False", "NotAvailable", "* RemoteConnectionProbe: Remote connection not established yet\n* InfrastructureReady: "+wait+"\n* ControlPlaneAvailable: "+wait, 0),
		cond("InfrastructureReady", "False", "DoesNotExist", wait, 0), cond("ControlPlaneAvailable", "False", "DoesNotExist", wait, 0))
	s.Pools, s.Deployments, s.Sets, s.Machines = nil, nil, nil, nil
	out := describe.Render(describe.Build(s, describe.Options{Grouping: true}), describe.Style{Now: now()})
	if strings.Count(out, wait) != 1 || !strings.Contains(out, "* InfrastructureReady, ControlPlaneAvailable: "+wait) {
		t.Errorf("said more than once:\n%s", out)
	}
}

// A condition that its gate wants False is an issue when it is True.
func TestPolarityOfGates(t *testing.T) {
	s := world()
	s.Cluster.Spec.AvailabilityGates = []clusterv1.ClusterAvailabilityGate{{ConditionType: "Overloaded", Polarity: clusterv1.NegativePolarityCondition}}
	s.Machines[1].Spec.ReadinessGates = []clusterv1.MachineReadinessGate{{ConditionType: "Burning", Polarity: clusterv1.NegativePolarityCondition}}
	s.Cluster.Status.Conditions = append(s.Cluster.Status.Conditions, cond("Overloaded", "True", "R", "too many requests", 0))
	s.Machines[1].Status.Conditions = append(s.Machines[1].Status.Conditions, cond("Burning", "False", "R", "no smoke", 0))
	out := describe.Render(describe.Build(s, describe.Options{Grouping: true}), describe.Style{Now: now()})
	if !strings.Contains(out, "too many requests") || strings.Contains(out, "no smoke") {
		t.Errorf("the polarity of gates is not heeded:\n%s", out)
	}
}

// Machines in the same state share a row, and what each says is kept.
func TestGroupsKeepMessages(t *testing.T) {
	group := func(count int) string {
		s := world()
		s.Machines = nil
		for i := range count {
			name := fmt.Sprintf("md-1-%02d", i)
			s.Machines = append(s.Machines, machine(meta(name, owner("MachineSet", "md-1")), "ExampleMachine",
				cond("Ready", "Unknown", "Unknown", "* NodeHealthy: Waiting for a Node with spec.providerID x://"+name+" to exist", 0)))
			s.Machines[i].Spec.InfrastructureRef, s.Machines[i].Spec.Bootstrap = clusterv1.ContractVersionedObjectReference{}, clusterv1.Bootstrap{}
		}
		return describe.Render(describe.Build(s, describe.Options{Grouping: true}), describe.Style{Now: now()})
	}
	few := group(3)
	for _, want := range []string{"3 Machines", "* md-1-00: NodeHealthy: Waiting for a Node with spec.providerID x://md-1-00", "x://md-1-01", "x://md-1-02"} {
		if !strings.Contains(few, want) {
			t.Errorf("%q is not in\n%s", want, few)
		}
	}
	if many := group(14); !strings.Contains(many, "And 4 more; --grouping=false shows all") || strings.Contains(many, "x://md-1-10") {
		t.Errorf("the messages of many Machines are not cut short:\n%s", many)
	}
}
