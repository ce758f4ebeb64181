package webhook

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slipwayhq/slipway/internal/admission"
)

// InProcessAdmission evaluates the rules of the webhooks without a server. `slipway plan` uses it as admission of its
// copy of the objects in memory.
type InProcessAdmission struct{ reviewer reviewer }

// NewInProcessAdmission returns an InProcessAdmission with the options of the webhooks.
func NewInProcessAdmission(opts Options) InProcessAdmission {
	return InProcessAdmission{newReviewer(opts)}
}

// Admit returns the object with its defaults, or the error with which the API server would reject the write. The
// argument old is nil for a creation. Related objects are read twice, as by the two webhooks. The first read is for
// defaults and can wait for the ClusterClass. The second adds everything that validation requires.
func (j InProcessAdmission) Admit(ctx context.Context, old, wanted client.Object, dryRun bool) (client.Object, error) {
	r := admission.Request{New: wanted, DryRun: dryRun, Gates: j.reviewer.opts.Gates, Policy: j.reviewer.opts.Policy}
	if old != nil {
		r.Old = old
	}
	if err := j.reviewer.related.read(ctx, &r, true); err != nil {
		return nil, err
	}
	if defaulted, changed := admission.Default(r); changed {
		r.New = defaulted
	}
	r.Related = admission.RelatedObjects{}
	if err := j.reviewer.related.read(ctx, &r, false); err != nil {
		return nil, err
	}
	if errs := admission.Validate(r).Errors; len(errs) > 0 {
		return nil, apierrors.NewInvalid(wanted.GetObjectKind().GroupVersionKind().GroupKind(), wanted.GetName(), errs)
	}
	o, ok := r.New.(client.Object)
	if !ok {
		return nil, fmt.Errorf("defaults of %T are %T", wanted, r.New)
	}
	return o, nil
}

// RefuseDeletion returns the error with which the API server would reject the deletion of an object, or nil.
func (j InProcessAdmission) RefuseDeletion(ctx context.Context, o client.Object) error {
	r := admission.Request{New: o, Old: o}
	if err := j.reviewer.related.read(ctx, &r, false); err != nil {
		return err
	}
	if refusal := admission.RefuseDeletion(o, r.Related); refusal != "" {
		kind := o.GetObjectKind().GroupVersionKind()
		return apierrors.NewForbidden(schema.GroupResource{Group: kind.Group, Resource: kind.Kind}, o.GetName(), errors.New(refusal))
	}
	return nil
}
