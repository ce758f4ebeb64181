package kube

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
)

// BenchmarkStatusChange compares a status of twelve conditions with what a controller says, which is the same: what most
// passes end with.
func BenchmarkStatusChange(b *testing.B) {
	m := &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "m", UID: "1", ResourceVersion: "7"}}
	m.Status.Phase = "Running"
	steps := []string{`".":{}`}
	for _, name := range strings.Fields("Available Ready UpToDate BootstrapConfigReady InfrastructureReady NodeHealthy NodeReady " +
		"Deleting Paused HealthCheckSucceeded OwnerRemediated Updating") {
		m.Status.Conditions = append(m.Status.Conditions, metav1.Condition{Type: name, Status: "True", Reason: name})
		steps = append(steps, `"k:{\"type\":\"`+name+`\"}":{".":{},"f:lastTransitionTime":{},"f:message":{},"f:reason":{},"f:status":{},"f:type":{}}`)
	}
	m.ManagedFields = []metav1.ManagedFieldsEntry{{
		Manager: ManagerPrefix + "bench", Operation: metav1.ManagedFieldsOperationApply, Subresource: "status",
		FieldsV1: metav1.NewFieldsV1(`{"f:status":{"f:phase":{},"f:conditions":{` + strings.Join(steps, ",") + `}}}`),
	}}
	scheme := runtime.NewScheme()
	if err := clusterv1.AddToScheme(scheme); err != nil {
		b.Fatal(err)
	}
	w := NewWriter(fake.NewClientBuilder().WithScheme(scheme).Build(), "bench")
	want := m.Status.DeepCopy()
	b.ReportAllocs()
	for b.Loop() {
		if c, err := w.StatusChange(m, want); c != nil || err != nil {
			b.Fatal(c, err)
		}
	}
}
