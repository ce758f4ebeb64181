package controllers

import (
	"context"
	"fmt"
	"time"

	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/kubernetes/pkg/controller/clusterroleaggregation"
)

// Aggregation is the name of the controller that RunAggregation runs.
const Aggregation = "clusterrole-aggregation-controller"

const (
	aggregationWorkers = 2
	aggregationResync  = 10 * time.Minute
)

// RunAggregation fills aggregated ClusterRoles in until ctx ends. It is the one
// controller that others wait for while a cluster starts, so it needs no
// kube-controller-manager, which begins after the default roles are there; root
// must be of group system:masters for that reason.
func RunAggregation(ctx context.Context, root *rest.Config) error {
	root = rest.CopyConfig(root)
	root.QPS = -1
	client, err := kubernetes.NewForConfig(rest.AddUserAgent(root, Aggregation))
	if err != nil {
		return fmt.Errorf("start %s: %w", Aggregation, err)
	}
	factory := informers.NewSharedInformerFactory(client, aggregationResync)
	controller := clusterroleaggregation.NewClusterRoleAggregation(factory.Rbac().V1().ClusterRoles(), client.RbacV1())
	factory.Start(ctx.Done())
	defer factory.Shutdown()
	controller.Run(ctx, aggregationWorkers)
	return ctx.Err()
}
