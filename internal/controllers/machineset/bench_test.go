package machineset

import (
	"fmt"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slipwayhq/slipway/internal/reconciler"
)

// BenchmarkPass is what one pass over a settled MachineSet of 200 Machines costs besides reading them.
func BenchmarkPass(b *testing.B) {
	s := settled(ofDeployment(), replicas(200), func(s *snapshot) {
		s.Machines = nil
		for i := range 200 {
			s.Machines = append(s.Machines, member(*s, fmt.Sprintf("ms-%03d", i)))
		}
	})
	for b.Loop() {
		p := decide(s)
		if !p.Idle() {
			b.Fatal(texts(p))
		}
		_ = report(s, p, reconciler.Outcome{})
	}
}

// BenchmarkRead is what reading a MachineSet of 200 Machines costs, with a client that copies, as a cache does not.
func BenchmarkRead(b *testing.B) {
	s := settled()
	objs := []client.Object{s.Set}
	for i := range 200 {
		objs = append(objs, member(s, fmt.Sprintf("ms-%03d", i)).Machine)
	}
	w := newWorld(nil, managementCluster(objs...).Build())
	for b.Loop() {
		if _, err := w.ctl.observe(b.Context(), s.Set); err != nil {
			b.Fatal(err)
		}
	}
}
