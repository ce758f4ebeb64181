package infrastructure_test

import (
	"context"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	infrav1 "github.com/slipwayhq/slipway/api/infrastructure/v1alpha1"
	"github.com/slipwayhq/slipway/internal/infrastructure"
)

func TestGate(t *testing.T) { // IC-07, IC-08
	now := metav1.Now()
	owned := func(o *infrav1.LocalCluster) { o.Labels = map[string]string{"owned": ""} }
	external := func(o *infrav1.LocalCluster) { o.Annotations = map[string]string{clusterv1.ManagedByAnnotation: "x"} }
	cases := map[string]struct {
		reason  string
		changes []func(*infrav1.LocalCluster)
		want    bool
	}{
		"ours":             {"it has its owner", []func(*infrav1.LocalCluster){owned}, true},
		"no owner":         {"IC-08", nil, false},
		"external":         {"IC-07: whatever the annotation's value", []func(*infrav1.LocalCluster){owned, external}, false},
		"gone":             {"what is kept of it goes too", []func(*infrav1.LocalCluster){func(o *infrav1.LocalCluster) { o.Name = "other" }}, true},
		"deleting, ours":   {"it waits for our finalizer", []func(*infrav1.LocalCluster){external, func(o *infrav1.LocalCluster) { o.DeletionTimestamp, o.Finalizers = &now, []string{"f"} }}, true},
		"deleting, theirs": {"it waits for somebody else", []func(*infrav1.LocalCluster){owned, func(o *infrav1.LocalCluster) { o.DeletionTimestamp, o.Finalizers = &now, []string{"g"} }}, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			o := &infrav1.LocalCluster{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "o"}}
			for _, change := range tc.changes {
				change(o)
			}
			s := runtime.NewScheme()
			if err := infrav1.AddToScheme(s); err != nil {
				t.Fatal(err)
			}
			passed := false
			g := infrastructure.ManagedReconciler{
				Client: fake.NewClientBuilder().WithScheme(s).WithObjects(o).Build(), Finalizer: "f",
				New:      func() client.Object { return &infrav1.LocalCluster{} },
				HasOwner: func(o client.Object) bool { _, ok := o.GetLabels()["owned"]; return ok },
				Inner:    reconcile.Func(func(context.Context, ctrl.Request) (ctrl.Result, error) { passed = true; return ctrl.Result{}, nil }),
			}
			if _, err := g.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKey{Namespace: "ns", Name: "o"}}); err != nil || passed != tc.want {
				t.Errorf("%s: passed %v, %v", tc.reason, passed, err)
			}
		})
	}
}
