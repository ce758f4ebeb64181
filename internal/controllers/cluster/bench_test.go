package cluster

import (
	"fmt"
	"testing"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/slipwayhq/slipway/internal/reconciler"
)

// The status of a Cluster is judged again with each change of one of its Machines.
func BenchmarkReport(b *testing.B) {
	for _, n := range []int{3, 200} {
		b.Run(fmt.Sprintf("machines=%d", n), func(b *testing.B) {
			s := settled(func(s *snapshot) {
				s.Machines = nil
				for i := range n {
					s.Machines = append(s.Machines, machine(fmt.Sprintf("m%d", i)))
				}
			})
			p := decide(s)
			if status := report(s, p, reconciler.Outcome{}).Status.(clusterv1.ClusterStatus); int(*status.Workers.ReadyReplicas) < n {
				b.Fatalf("want %d ready, have %d", n, *status.Workers.ReadyReplicas)
			}
			b.ReportAllocs()
			for b.Loop() {
				report(s, p, reconciler.Outcome{})
			}
		})
	}
}
