package machinetemplate

import (
	"context"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	infrav1 "github.com/slipwayhq/slipway/api/infrastructure/v1alpha1"
	"github.com/slipwayhq/slipway/internal/kube"
	"github.com/slipwayhq/slipway/internal/loop"
	"github.com/slipwayhq/slipway/internal/membership"
	"github.com/slipwayhq/slipway/internal/providers/local/offer"
)

// Name of the controller.
const Name = "local-machinetemplate"

// ownedWithin is how long a new template is left to those who make it their own: a status that is written meanwhile makes
// their patches fail, and no one scales by it yet.
const ownedWithin = 10 * time.Second

// Controller reconciles LocalMachineTemplates. It has no conditions, finalizer or pause, and so no driver.
type Controller struct {
	client client.Client
	writer *kube.Writer
	scope  membership.Scope
	nodes  offer.Nodes
	now    func() time.Time
}

// Add adds the controller to the manager. The nodes say what one of a template offers.
func Add(s loop.Setup, nodes offer.Nodes) error {
	c := &Controller{
		client: s.Manager.GetClient(), writer: kube.NewWriter(s.Manager.GetClient(), Name),
		scope: s.Scope(), nodes: nodes, now: time.Now,
	}
	return s.Builder(Name, &infrav1.LocalMachineTemplate{}).Complete(c)
}

// Reconcile implements reconcile.Reconciler.
func (c *Controller) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
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
	offered, err := c.nodes.Offered(o.Spec.Template.Spec)
	if err != nil {
		return ctrl.Result{}, err
	}
	status := infrav1.LocalMachineTemplateStatus{Capacity: offered.Capacity, NodeInfo: offered.NodeInfo}
	return ctrl.Result{}, client.IgnoreNotFound(c.writer.ApplyStatus(ctx, o, status))
}
