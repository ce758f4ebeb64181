package condition_test

import (
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/slipwayhq/slipway/internal/condition"
)

// BenchmarkEvaluate evaluates a table with a summary over conditions that are as they were.
func BenchmarkEvaluate(b *testing.B) {
	w := world{infra: condition.True("Ready"), node: condition.True("Healthy")}
	at := condition.EvaluateOptions{Generation: 1, Now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}
	at.Old = table.Evaluate(w, at)
	if !condition.Set(at.Old).IsTrue("Ready") {
		b.Fatalf("want Ready, have %v", at.Old)
	}
	b.ReportAllocs()
	for b.Loop() {
		table.Evaluate(w, at)
	}
}

// BenchmarkAggregate sums up Machines of which every tenth has the same trouble.
func BenchmarkAggregate(b *testing.B) {
	reasons := condition.Reasons{Info: "Ready", Issue: "NotReady", Unknown: "ReadyUnknown"}
	for _, n := range []int{3, 100} {
		b.Run(fmt.Sprintf("machines=%d", n), func(b *testing.B) {
			var members []condition.AggregateMember
			for i := range n {
				c := cond("Ready", metav1.ConditionTrue, "Ready", "")
				if i%10 == 0 {
					c = cond("Ready", metav1.ConditionFalse, "NotReady", "* NodeHealthy: kubelet stopped posting node status")
				}
				members = append(members, condition.AggregateMember{Kind: "Machine", Name: fmt.Sprintf("m%d", i), Conditions: condition.Set{c}})
			}
			if v := condition.Aggregate(members, condition.Part{Type: "Ready"}, reasons); v.Reason != "NotReady" {
				b.Fatalf("want NotReady, have %v", v)
			}
			b.ReportAllocs()
			for b.Loop() {
				condition.Aggregate(members, condition.Part{Type: "Ready"}, reasons)
			}
		})
	}
}
