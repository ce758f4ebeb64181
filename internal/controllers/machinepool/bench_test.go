package machinepool

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/slipwayhq/slipway/internal/reconciler"
	"github.com/slipwayhq/slipway/sdk/contract"
)

// large is a pool of n instances with their Machines and Nodes, all of them running.
func large(n int32) snapshot {
	return settled(func(s *snapshot) {
		var ids []string
		s.Nodes.Items = map[string]corev1.Node{}
		for i := range n {
			name, id := fmt.Sprintf("m%d", i), fmt.Sprintf("x://%d", i)
			ids = append(ids, id)
			s.Nodes.Items[id] = node(name, id)
			s.InfraMachines = append(s.InfraMachines, object("kind: FooMachine\nmetadata: {name: "+name+"}", contract.V1Beta2))
			m := machine(name, "v1.36.0", is(clusterv1.ReadyCondition, "True"), is(clusterv1.AvailableCondition, "True"), is(clusterv1.MachineUpToDateCondition, "True"))
			m.Spec.ProviderID = id
			s.Machines = append(s.Machines, m)
		}
		s.Pool.Spec.Replicas, s.Pool.Spec.ProviderIDList = &n, ids
		s.Infra = infraOf(contract.V1Beta2, "spec: {providerIDList: ["+strings.Join(ids, ", ")+"]}",
			fmt.Sprintf(`{initialization: {provisioned: true}, replicas: %d, infrastructureMachineKind: FooMachine}`, n))
	})
}

func BenchmarkDecide(b *testing.B) {
	for _, n := range []int32{3, 100} {
		b.Run(fmt.Sprintf("machines=%d", n), func(b *testing.B) {
			s := large(n)
			if p := decide(s); len(p.Actions)+len(p.Waits) > 0 {
				b.Fatalf("want a pool with nothing to do, have %v", texts(p))
			}
			b.ReportAllocs()
			for b.Loop() {
				decide(s)
			}
		})
	}
}

func BenchmarkReport(b *testing.B) {
	for _, n := range []int32{3, 100} {
		b.Run(fmt.Sprintf("machines=%d", n), func(b *testing.B) {
			s := large(n)
			p := decide(s)
			if status := report(s, p, reconciler.Outcome{}).Status.(clusterv1.MachinePoolStatus); *status.ReadyReplicas != n {
				b.Fatalf("want %d ready, have %d", n, *status.ReadyReplicas)
			}
			b.ReportAllocs()
			for b.Loop() {
				report(s, p, reconciler.Outcome{})
			}
		})
	}
}
