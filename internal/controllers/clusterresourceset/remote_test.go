package clusterresourceset

import (
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slipwayhq/slipway/internal/testkit"
)

// TestEveryWriteToAWorkloadClusterFailsOnce: what could not be applied is applied later, and recorded only then.
func TestEveryWriteToAWorkloadClusterFailsOnce(t *testing.T) { // RS-04 to RS-07, RS-09
	for _, strategy := range []string{"ApplyOnce", "Reconcile"} {
		t.Run(strategy, func(t *testing.T) {
			testkit.EveryWrite(t, emptyCluster, func(t *testing.T, workload client.WithWatch) {
				h := newHarness(t, world(strategy).WithReturnManagedFields().Build())
				h.ctl.workloads.(workloads)["c"] = workload
				h.settle("set")
				for _, name := range []string{"c", "d"} {
					h.expect("applied to "+name, h.said(name), "one")
					h.expect("recorded of "+name, h.recorded(name, "set"), both)
				}
				h.expect("condition", h.condition(), "True Applied")
			})
		})
	}
}
