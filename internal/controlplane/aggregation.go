package controlplane

import (
	"context"
	"fmt"
	"time"

	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/kubernetes/pkg/controller/clusterroleaggregation"
)

// aggregation is the name of the controller that runAggregation runs.
const aggregation = "clusterrole-aggregation-controller"

const (
	aggregationWorkers = 2
	aggregationResync  = 10 * time.Minute
)

// runAggregation runs the Kubernetes controller that fills aggregated ClusterRoles, until ctx ends. [StartManagement]
// runs it for the management cluster; in workload clusters, kube-controller-manager does. Other components of the
// management cluster need these roles early, therefore the controller does not run in kube-controller-manager, which
// starts after the default roles exist. For the same reason, root must be in group system:masters.
func runAggregation(ctx context.Context, root *rest.Config) error {
	root = rest.CopyConfig(root)
	root.QPS = -1
	client, err := kubernetes.NewForConfig(rest.AddUserAgent(root, aggregation))
	if err != nil {
		return fmt.Errorf("start %s: %w", aggregation, err)
	}
	factory := informers.NewSharedInformerFactory(client, aggregationResync)
	controller := clusterroleaggregation.NewClusterRoleAggregation(factory.Rbac().V1().ClusterRoles(), client.RbacV1())
	factory.Start(ctx.Done())
	defer factory.Shutdown()
	controller.Run(ctx, aggregationWorkers)
	return ctx.Err()
}
