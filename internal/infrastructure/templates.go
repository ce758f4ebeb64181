package infrastructure

import (
	"context"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slipwayhq/slipway/internal/kube"
	"github.com/slipwayhq/slipway/internal/reconciler/watches"
)

// ownedWithin is the time for which the status of a new template is not written while it has no owner. A status update
// in between would cause conflicts for controllers that adopt the template, and no autoscaler uses it yet.
const ownedWithin = 10 * time.Second

// TemplateReconciler writes to the status of machine templates which capacity a node created from them has, so that the
// cluster autoscaler can scale a group up from zero. The providers add it as the controllers of LocalMachineTemplates
// and SSHMachineTemplates. It does not use the driver of package reconciler, because the templates have no conditions
// and no finalizer and cannot be paused.
type TemplateReconciler struct {
	Client client.Client
	// Writer has the field manager that owns the status.
	Writer *kube.Writer
	Scope  watches.Scope
	Now    func() time.Time
	// New returns an empty template of the kind.
	New func() client.Object
	// Status returns the status of a template, or nil while nothing is known and nothing was reported.
	Status func(ctx context.Context, template client.Object) (any, error)
	// Interval is the time after which the status is computed again. Zero: only after changes.
	Interval time.Duration
}

// Reconcile writes the status of one template. It writes nothing else.
func (r TemplateReconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	o := r.New()
	if err := r.Client.Get(ctx, req.NamespacedName, o); err != nil || !o.GetDeletionTimestamp().IsZero() {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if included, err := r.Scope.Includes(ctx, o); err != nil || !included {
		return ctrl.Result{}, err
	}
	if left := ownedWithin - r.Now().Sub(o.GetCreationTimestamp().Time); left > 0 && len(o.GetOwnerReferences()) == 0 {
		return ctrl.Result{RequeueAfter: min(left, ownedWithin)}, nil // the API server's clock may be ahead
	}
	status, err := r.Status(ctx, o)
	if err == nil && status != nil {
		err = client.IgnoreNotFound(r.Writer.ApplyStatus(ctx, o, status))
	}
	if err != nil {
		return ctrl.Result{}, err
	}
	return ctrl.Result{RequeueAfter: r.Interval}, nil
}
