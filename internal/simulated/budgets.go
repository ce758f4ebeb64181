package simulated

import (
	"context"
	"fmt"

	"github.com/go-logr/logr"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/restmapper"
	"k8s.io/client-go/scale"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/controller/disruption"
)

// budget runs the PodDisruptionBudget controller of Kubernetes while a cluster has any budget. The simulator calls it
// for each change of one. Evictions, and therefore drains of Nodes, depend on the status that it computes.
func (l *simulator) budget(m *simulatedCluster) error {
	wanted := len(m.tenant.Keys.Keys(budgetKeys)) > 0
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case wanted && m.budgets == nil && m.ctx.Err() == nil:
		ctx, cancel := context.WithCancel(m.ctx)
		if err := l.runBudgets(ctx, m); err != nil {
			cancel()
			return err
		}
		m.budgets = cancel
	case !wanted && m.budgets != nil:
		m.budgets()
		m.budgets = nil
	}
	return nil
}

// runBudgets starts the controller, which stops when the context is done.
func (l *simulator) runBudgets(ctx context.Context, m *simulatedCluster) error {
	ctx = klog.NewContext(ctx, logr.Discard())
	config := l.api.LoopbackOf(ctx, m.tenant)
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	mapper := restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(client.Discovery()))
	kinds := scale.NewDiscoveryScaleKindResolver(client.Discovery())
	scales, err := scale.NewForConfig(config, mapper, dynamic.LegacyAPIPathResolverFunc, kinds)
	if err != nil {
		return fmt.Errorf("preparing the controller of disruption budgets: %w", err)
	}
	f := informers.NewSharedInformerFactory(client, 0)
	c := disruption.NewDisruptionController(ctx,
		f.Core().V1().Pods(), f.Policy().V1().PodDisruptionBudgets(), f.Core().V1().ReplicationControllers(),
		f.Apps().V1().ReplicaSets(), f.Apps().V1().Deployments(), f.Apps().V1().StatefulSets(),
		client, mapper, scales, client.Discovery())
	f.Start(ctx.Done())
	go c.Run(ctx)
	return nil
}
