package clone

import (
	"context"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slipwayhq/slipway/internal/kube"
	"github.com/slipwayhq/slipway/internal/reconciler"
	"github.com/slipwayhq/slipway/sdk/contract"
)

// Template is a bootstrap or infrastructure template that an owner of Machines references (a MachineDeployment, a
// MachineSet or a control plane). The zero value means that there is no reference.
type Template struct {
	Ref clusterv1.ContractVersionedObjectReference
	// Object is the referenced template.
	Object contract.Object
}

// Exists reports whether the template was read.
func (t Template) Exists() bool { return t.Object.Presence() == contract.Found }

// Blocker returns why the template cannot be cloned, or an empty string if it can be cloned or there is no
// reference. Messages of waits contain it.
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

// Await waits until the template can be cloned. The message is the Blocker followed by the consequence. The MachineSet
// controller calls it before it creates Machines.
func (t Template) Await(p *reconciler.Plan, reason, consequence string) {
	wait := p.WaitFor(reason, "%s%s", t.Blocker(), consequence).For(t.Ref.Kind, t.Ref.Name)
	if t.Object.Problem != "" {
		wait.UntilUserActs()
	} else {
		wait.ToChange("")
	}
}

// Templates are the templates that an owner references.
type Templates []Template

// ReadTemplates reads the templates that an owner references, in the order of the references. The controllers of the
// owners call it in each reconciliation.
func ReadTemplates(ctx context.Context, r *kube.References, owner client.Object, refs ...clusterv1.ContractVersionedObjectReference) (Templates, error) {
	out := make(Templates, 0, len(refs))
	for _, ref := range refs {
		o, err := r.GetReferenced(ctx, owner, ref)
		if err != nil {
			return nil, err
		}
		out = append(out, Template{Ref: ref, Object: o})
	}
	return out, nil
}

// Get returns the template with the reference, or the zero value if there is none. The controllers of the owners call
// it.
func (t Templates) Get(ref clusterv1.ContractVersionedObjectReference) Template {
	for _, one := range t {
		if one.Ref == ref {
			return one
		}
	}
	return Template{}
}

// Unusable returns the templates that cannot be cloned. The MachineSet controller waits for them, and the
// MachineDeployment controller plans no in-place update.
func (t Templates) Unusable() []Template {
	var out []Template
	for _, one := range t {
		if one.Blocker() != "" {
			out = append(out, one)
		}
	}
	return out
}
