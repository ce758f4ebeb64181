package topology

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/types"
	hooksv1 "sigs.k8s.io/cluster-api/api/runtime/hooks/v1alpha1"

	"github.com/slipwayhq/slipway/sdk/extension/patch"
)

// Patcher handles the hook GeneratePatches with rules. Its method Generate is a handler.
type Patcher struct {
	// Rules for the same template are applied in order, each to the result of the previous one.
	Rules []Rule
	// Format is the format of the patches; default JSONPatch.
	Format hooksv1.PatchType
	// Strict makes the hook fail for templates of a kind without any rule, instead of leaving them unchanged.
	Strict bool
}

// Generate responds with a patch for every template that the rules change. The errors of all templates are joined in
// the message of a response with status Failure.
func (p Patcher) Generate(ctx context.Context, in *hooksv1.GeneratePatchesRequest, out *hooksv1.GeneratePatchesResponse) {
	format := p.Format
	if format == "" {
		format = hooksv1.JSONPatchType
	}
	var problems []error
	for _, i := range in.Items {
		t, err := item{string(i.UID), i.HolderReference, i.Object.Raw, i.Variables}.template(in.Variables)
		var changed []byte
		if err == nil {
			changed, err = walk(ctx, p.Rules, t, p.Strict)
		}
		var difference []byte
		if err == nil {
			difference, err = patch.Diff(format, i.Object.Raw, changed)
		}
		if err != nil {
			problems = append(problems, err)
			continue
		}
		if difference != nil {
			out.Items = append(out.Items, hooksv1.GeneratePatchesResponseItem{UID: types.UID(t.UID), PatchType: format, Patch: difference})
		}
	}
	if err := errors.Join(problems...); err != nil {
		out.Items = nil
		refuse(out, err)
	}
}

// Validator handles the hook ValidateTopology with rules that only validate: their changes are ignored. Its method
// Validate is a handler.
type Validator struct {
	Rules []Rule
}

// Validate responds with Success if no rule returns an error, or else with Failure and all errors.
func (v Validator) Validate(ctx context.Context, in *hooksv1.ValidateTopologyRequest, out *hooksv1.ValidateTopologyResponse) {
	var problems []error
	for _, i := range in.Items {
		if i == nil {
			continue
		}
		t, err := validated(i).template(in.Variables)
		if err == nil {
			_, err = walk(ctx, v.Rules, t, false)
		}
		if err != nil {
			problems = append(problems, err)
		}
	}
	if err := errors.Join(problems...); err != nil {
		refuse(out, err)
	}
}

func validated(i *hooksv1.ValidateTopologyRequestItem) item {
	return item{holder: i.HolderReference, raw: i.Object.Raw, variables: i.Variables}
}

// walk applies the matching rules to a template and returns the result.
func walk(ctx context.Context, rules []Rule, t Template, strict bool) ([]byte, error) {
	object, matched := t.raw, false
	for _, r := range rules {
		if !r.isOfKind(t.Kind) {
			continue
		}
		matched = true
		if !r.selects(t) {
			continue
		}
		changed, err := r.apply(ctx, t, object)
		if err != nil {
			return nil, t.failed(err)
		}
		object = changed
	}
	if strict && !matched {
		return nil, t.failed(fmt.Errorf("no rule is for templates of %s", t.Kind.GroupVersion()))
	}
	return object, nil
}

func refuse(out hooksv1.ResponseObject, err error) {
	out.SetStatus(hooksv1.ResponseStatusFailure)
	out.SetMessage(err.Error())
}
