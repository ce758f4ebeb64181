package machinetemplate

import (
	"context"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	infrav1 "github.com/slipwayhq/slipway/api/infrastructure/v1alpha1"
	"github.com/slipwayhq/slipway/internal/kube"
	"github.com/slipwayhq/slipway/internal/local/backend"
	"github.com/slipwayhq/slipway/internal/reconciler"
	"github.com/slipwayhq/slipway/internal/reconciler/watches"
)

// Name is the name of the controller. Its field manager is "slipway-local-machinetemplate", which owns fields of
// existing objects, so it must not change.
const Name = "local-machinetemplate"

// ownedWithin is the time for which the status of a new template is not written while it has no owner. A status update
// in between would cause conflicts for controllers that adopt the template, and no autoscaler uses it yet.
const ownedWithin = 10 * time.Second

// controller reconciles LocalMachineTemplates. It does not use the driver of package reconciler, because the
// templates have no conditions and no finalizer and cannot be paused.
type controller struct {
	client client.Client
	writer *kube.Writer
	scope  watches.Scope
	nodes  backend.CapacityCalculator
	now    func() time.Time
}

// Add adds the LocalMachineTemplate controller to the manager. Package local calls it. nodes computes the capacity of a
// template's nodes.
func Add(s reconciler.Setup, nodes backend.CapacityCalculator) error {
	c := &controller{
		client: s.Manager.GetClient(), writer: kube.NewWriter(s.Manager.GetClient(), Name),
		scope: s.Scope(), nodes: nodes, now: s.Clock(),
	}
	return s.Builder(Name, &infrav1.LocalMachineTemplate{}).Complete(c)
}

// Reconcile writes the capacity of a node to the status of one template. It writes nothing else.
func (c *controller) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	o := &infrav1.LocalMachineTemplate{}
	if err := c.client.Get(ctx, req.NamespacedName, o); err != nil || !o.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if included, err := c.scope.Includes(ctx, o); err != nil || !included {
		return ctrl.Result{}, err
	}
	if left := ownedWithin - c.now().Sub(o.CreationTimestamp.Time); left > 0 && len(o.OwnerReferences) == 0 {
		return ctrl.Result{RequeueAfter: min(left, ownedWithin)}, nil // the API server's clock may be ahead
	}
	offered, err := c.nodes.CapacityOf(o.Spec.Template.Spec)
	if err != nil {
		return ctrl.Result{}, err
	}
	status := infrav1.LocalMachineTemplateStatus{Capacity: offered.Capacity, NodeInfo: offered.NodeInfo}
	return ctrl.Result{}, client.IgnoreNotFound(c.writer.ApplyStatus(ctx, o, status))
}
