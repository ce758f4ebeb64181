package clusterresourceset

import (
	"errors"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	addonsv1 "sigs.k8s.io/cluster-api/api/addons/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slipwayhq/slipway/internal/condition"
	"github.com/slipwayhq/slipway/test/testkit"
)

// TestEveryWriteToAWorkloadClusterFailsOnce: what could not be applied is applied later, and recorded only then.
func TestEveryWriteToAWorkloadClusterFailsOnce(t *testing.T) { // RS-04 to RS-07, RS-09
	for _, strategy := range []string{"ApplyOnce", "Reconcile"} {
		t.Run(strategy, func(t *testing.T) {
			testkit.FailEachWrite(t, emptyCluster, func(t *testing.T, workload client.WithWatch) {
				h := newHarness(t, world(strategy).WithReturnManagedFields().Build())
				h.ctl.workloads.(fakeWorkloads)["c"] = workload
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

// A set of which something cannot be read is not known to be applied, and its generation is not observed.
func TestUnread(t *testing.T) {
	set := &addonsv1.ClusterResourceSet{ObjectMeta: metav1.ObjectMeta{Name: "s", Generation: 2}}
	set.Status.ObservedGeneration = 1
	set.Status.Conditions = []metav1.Condition{{Type: addonsv1.ClusterResourceSetResourcesAppliedCondition, Status: metav1.ConditionTrue, Reason: "Applied"}}
	status := unread(set, time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC), errors.New("listing Clusters: no answer")).Status.(addonsv1.ClusterResourceSetStatus)
	got := condition.Set(status.Conditions).Get(addonsv1.ClusterResourceSetResourcesAppliedCondition)
	if got == nil || got.Status != metav1.ConditionFalse || got.Message != "listing Clusters: no answer" || status.ObservedGeneration != 1 {
		t.Errorf("got %+v, generation %d", got, status.ObservedGeneration)
	}
}
