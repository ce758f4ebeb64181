package clone

import (
	"context"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slipwayhq/slipway/internal/kube"
	"github.com/slipwayhq/slipway/internal/loop"
	"github.com/slipwayhq/slipway/sdk/contract"
)

// Template is one of the templates that an owner refers to. The zero value is no reference.
type Template struct {
	Ref clusterv1.ContractVersionedObjectReference
	// Object that the reference leads to.
	Object contract.Object
}

// Exists reports whether the template was read.
func (t Template) Exists() bool { return t.Object.Presence() == contract.Found }

// Blocker says why nothing can be cloned from the template; empty: it can, or none is needed.
func (t Template) Blocker() string {
	switch {
	case !t.Ref.IsDefined():
		return ""
	case t.Object.Problem != "":
		return t.Object.Problem
	case !t.Exists():
		return t.Ref.Kind + " " + t.Ref.Name + " does not exist"
	}
	return ""
}

// Await waits until the template can be cloned; the message is its Blocker with what follows from it.
func (t Template) Await(p *loop.Plan, reason, consequence string) {
	wait := p.WaitFor(reason, "%s%s", t.Blocker(), consequence).For(t.Ref.Kind, t.Ref.Name)
	if t.Object.Problem != "" {
		wait.ForPerson()
	} else {
		wait.ToChange("")
	}
}

// Templates are those that an owner refers to.
type Templates []Template

// ReadTemplates reads the templates that an owner refers to, in the order of the references.
func ReadTemplates(ctx context.Context, r *kube.References, owner client.Object, refs ...clusterv1.ContractVersionedObjectReference) (Templates, error) {
	out := make(Templates, 0, len(refs))
	for _, ref := range refs {
		o, err := r.Follow(ctx, owner, ref)
		if err != nil {
			return nil, err
		}
		out = append(out, Template{Ref: ref, Object: o})
	}
	return out, nil
}

// Of returns the template that a reference names; it does not [Template.Exists] where there is none.
func (t Templates) Of(ref clusterv1.ContractVersionedObjectReference) Template {
	for _, one := range t {
		if one.Ref == ref {
			return one
		}
	}
	return Template{}
}

// Unusable are those that nothing can be cloned from.
func (t Templates) Unusable() []Template {
	var out []Template
	for _, one := range t {
		if one.Blocker() != "" {
			out = append(out, one)
		}
	}
	return out
}
