package cluster

import (
	"context"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/slipwayhq/slipway/internal/cli/management"
	"github.com/slipwayhq/slipway/internal/operate/upgrade"
)

// Who may read the MachineDeployment alone follows its rollout all the same.
func TestReadWithoutItsCluster(t *testing.T) { // CX-17
	s := runtime.NewScheme()
	if err := clusterv1.AddToScheme(s); err != nil {
		t.Fatal(err)
	}
	d := &clusterv1.MachineDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "md", Generation: 1}}
	d.Spec.ClusterName = "demo"
	d.Status.Conditions = []metav1.Condition{{Type: clusterv1.RollingOutCondition, Status: "True", Message: "Rolling out 1 not up-to-date replicas"}}
	forbidden := interceptor.Funcs{Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
		if _, is := o.(*clusterv1.Cluster); is {
			return apierrors.NewForbidden(schema.GroupResource{Group: clusterv1.GroupVersion.Group, Resource: "clusters"}, key.Name, nil)
		}
		return c.Get(ctx, key, o, opts...)
	}}
	for name, funcs := range map[string]interceptor.Funcs{"forbidden": forbidden, "gone": {}} {
		m := &management.Connection{Client: fake.NewClientBuilder().WithScheme(s).WithObjects(d).WithInterceptorFuncs(funcs).Build(), Namespace: "ns"}
		state, err := readRollout(t.Context(), m, upgrade.RolloutResource{Kind: upgrade.MachineDeployment, Name: "md"}, time.Now())
		if err != nil || state.Reason != "Rolling out 1 not up-to-date replicas" {
			t.Errorf("%s: %+v, %v", name, state, err)
		}
	}
}
