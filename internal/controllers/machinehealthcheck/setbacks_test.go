package machinehealthcheck

import (
	"testing"
	"time"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/slipwayhq/slipway/internal/condition"
)

// late is a Machine of a set that was created so long ago, and whose infrastructure is not ready.
func late(name string, age time.Duration) *clusterv1.Machine {
	return machine(name, noNode, ofPool, func(m *clusterv1.Machine) { m.CreationTimestamp = ago(age) })
}

func TestSetbacks(t *testing.T) { // HC-03
	var s setbacks
	check := func(what string, m *clusterv1.Machine, want int) {
		t.Helper()
		if got := s.before(m); got != want {
			t.Errorf("%s: %d setbacks, want %d", what, got, want)
		}
	}
	a, b := late("a", time.Hour), late("b", time.Hour)
	check("nothing happened", a, 0)
	s.record(a, now.Add(-50*time.Minute))
	s.record(a, now.Add(-50*time.Minute)) // another health check marks it, too
	s.record(b, now.Add(-49*time.Minute)) // created before a was marked: the same setback
	check("the one that was marked keeps its time", a, 0)
	check("its successor", late("c", 40*time.Minute), 1)
	s.record(late("c", 40*time.Minute), now.Add(-30*time.Minute))
	check("the next successor", late("d", 20*time.Minute), 2)
	other := late("x", time.Minute)
	other.OwnerReferences[0].UID = "another"
	check("another owner", other, 0)
	s.record(machine("p", noNode, ofPool, has(clusterv1.MachineInfrastructureReadyCondition, "True", "A", time.Minute)), now)
	check("a Node that does not come is none", late("d", 20*time.Minute), 2)
	check("ready before", machine("old", ofPool, has(clusterv1.MachineInfrastructureReadyCondition, "True", "A", time.Hour)), 1)
	check("the provider delivers", machine("new", ofPool, has(clusterv1.MachineInfrastructureReadyCondition, "True", "A", time.Minute)), 0)
	check("which ends it", late("e", time.Second), 0)
	for i := range 20 {
		s.record(late("f", 0), now.Add(time.Duration(i)*time.Nanosecond))
	}
	if got := s.before(late("g", -time.Minute)); got != maxSetbacks {
		t.Errorf("%d setbacks: the time is bounded", got)
	}
}

// The Machines of MachinePools wait for the provider of the infrastructure, by name.
func TestRemediator(t *testing.T) { // MP-16
	pool := &clusterv1.MachinePool{}
	pool.Namespace, pool.Name = "ns", "p"
	pool.Spec.Template.Spec.InfrastructureRef = clusterv1.ContractVersionedObjectReference{APIGroup: "i", Kind: "FooMachinePool", Name: "i"}
	c := &controller{client: fake.NewClientBuilder().WithScheme(newScheme()).WithObjects(pool).Build()}
	s := newSnapshot(check(), sick("m", ofPool), sick("n"))
	if err := c.readRemediators(t.Context(), &s); err != nil {
		t.Fatal(err)
	}
	got := assess(s).wants(assess(s).targets[0]).conditions.Owner
	if want := condition.False("WaitingForRemediation", "Waiting for the provider of FooMachinePool i to replace the Machine"); got != want {
		t.Errorf("%+v", got)
	}
	if s.Targets[1].Remediator != "" {
		t.Errorf("%+v: a Machine of a set", s.Targets[1])
	}
}
