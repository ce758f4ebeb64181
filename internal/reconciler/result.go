package reconciler

import (
	"cmp"
	"fmt"

	"github.com/go-logr/logr"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/slipwayhq/slipway/internal/fault"
)

// result maps the error to the time of the next reconciliation. It logs errors that users should read; errors that
// a retry resolves are not logged as errors.
func (r *Reconciler[O, S]) result(log logr.Logger, plan Plan, err error) (ctrl.Result, error) {
	if err == nil {
		return ctrl.Result{RequeueAfter: plan.Recheck}, nil
	}
	var details []any
	if f := fault.As(err); f != nil {
		details = f.Details
	}
	switch fault.KindOf(err) {
	case fault.Conflict:
		log.V(4).Info("write conflict, retrying", "error", err.Error())
		return ctrl.Result{RequeueAfter: conflictDelay}, nil
	case fault.Unreachable:
		log.Info("unreachable, retrying", append(details, "error", err.Error())...)
		return ctrl.Result{RequeueAfter: cmp.Or(fault.RetryAfter(err), unreachableDelay)}, nil
	case fault.Invalid:
		log.Info("invalid input, waiting for it to change", append(details, "error", err.Error())...)
		plan.RecheckIn(invalidDelay)
		return ctrl.Result{RequeueAfter: plan.Recheck}, nil
	}
	return ctrl.Result{}, err // controller-runtime logs the error and retries with backoff
}

func first(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

func texts[T fmt.Stringer](items []T) []string {
	out := make([]string, 0, len(items))
	for _, item := range items {
		out = append(out, item.String())
	}
	return out
}
