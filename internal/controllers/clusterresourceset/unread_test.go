package clusterresourceset

import (
	"errors"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	addonsv1 "sigs.k8s.io/cluster-api/api/addons/v1beta2"

	"github.com/slipwayhq/slipway/internal/condition"
)

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
