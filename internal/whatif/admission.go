package whatif

import (
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slipwayhq/slipway/internal/admission"
	"github.com/slipwayhq/slipway/internal/policy"
	"github.com/slipwayhq/slipway/internal/whatif/memory"
)

// Admission judges writes as the webhooks do.
func Admission(gates admission.Gates, allowed policy.Configuration) memory.Admission {
	return func(old, wanted client.Object) (client.Object, error) {
		r := admission.Request{New: wanted, Gates: gates, Policy: allowed}
		if old != nil {
			r.Old = old
		}
		defaulted, changed := admission.Default(r)
		if changed {
			r.New = defaulted
		}
		kind := wanted.GetObjectKind().GroupVersionKind().GroupKind()
		if errs := admission.Validate(r).Errors; len(errs) > 0 {
			return nil, apierrors.NewInvalid(kind, wanted.GetName(), errs)
		}
		o, ok := r.New.(client.Object)
		if !ok {
			return nil, fmt.Errorf("admission of %s returned %T", kind, r.New)
		}
		return o, nil
	}
}
