package topology

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	hooksv1 "sigs.k8s.io/cluster-api/api/runtime/hooks/v1alpha1"

	"github.com/slipwayhq/slipway/sdk/extension/patch"
)

// Template is a template of a request.
type Template struct {
	// UID identifies the template within the request.
	UID string
	// Kind is the group, version and kind of the template.
	Kind schema.GroupVersionKind
	// Holder is the object that uses the template, with the field that refers to it, for example the MachineDeployment
	// and spec.template.spec.infrastructureRef.
	Holder hooksv1.HolderReference
	// Variables are the variables for the template.
	Variables Variables

	raw []byte
}

// Raw returns the template as JSON.
func (t Template) Raw() []byte { return t.raw }

// Rule modifies or validates templates of one kind. Create it with [For] or [ForUnstructured].
type Rule struct {
	kind  schema.GroupVersionKind
	where []Selector
	apply func(ctx context.Context, t Template, object []byte) ([]byte, error)
}

// For returns a rule for templates of an apiVersion and kind, decoded as a T. The changes that do makes become the
// patch. An error results in status Failure.
func For[T any](apiVersion, kind string, do func(ctx context.Context, t Template, object *T) error) Rule {
	return Rule{kind: kindOf(apiVersion, kind), apply: func(ctx context.Context, t Template, object []byte) ([]byte, error) {
		return patch.Typed(object, func(typed *T) error { return do(ctx, t, typed) })
	}}
}

// ForUnstructured is [For] for templates without a Go type. The kind "*" matches every kind.
func ForUnstructured(apiVersion, kind string, do func(ctx context.Context, t Template, object *unstructured.Unstructured) error) Rule {
	return Rule{kind: kindOf(apiVersion, kind), apply: func(ctx context.Context, t Template, object []byte) ([]byte, error) {
		u := &unstructured.Unstructured{}
		if err := u.UnmarshalJSON(object); err != nil {
			return nil, fmt.Errorf("reading the object: %w", err)
		}
		if err := do(ctx, t, u); err != nil {
			return nil, err
		}
		return u.MarshalJSON()
	}}
}

func kindOf(apiVersion, kind string) schema.GroupVersionKind {
	return schema.FromAPIVersionAndKind(apiVersion, kind)
}

// Where restricts the rule to templates that one of the selectors matches:
//
//	topology.For("infrastructure.slipway.dev/v1alpha1", "LocalMachineTemplate", addDisk).
//		Where(topology.ControlPlane(), topology.MachineDeploymentClass("storage-*"))
func (r Rule) Where(one ...Selector) Rule {
	r.where = one
	return r
}

// isOfKind reports whether the rule applies to templates of a kind, ignoring selectors.
func (r Rule) isOfKind(kind schema.GroupVersionKind) bool {
	return r.kind == kind || r.kind.Kind == "*"
}

// selects reports whether the selectors match a template.
func (r Rule) selects(t Template) bool {
	return r.where == nil || slices.ContainsFunc(r.where, func(s Selector) bool { return s(t) })
}

// item is the common part of GeneratePatches and ValidateTopology requests.
type item struct {
	uid       string
	holder    hooksv1.HolderReference
	raw       []byte
	variables []hooksv1.Variable
}

func (i item) template(global []hooksv1.Variable) (Template, error) {
	t := Template{UID: i.uid, Holder: i.holder, raw: i.raw}
	var meta struct{ APIVersion, Kind string }
	if err := json.Unmarshal(i.raw, &meta); err != nil {
		return t, t.failed(fmt.Errorf("the template is not an object: %w", err))
	}
	t.Kind = schema.FromAPIVersionAndKind(meta.APIVersion, meta.Kind)
	variables, err := NewVariables(global, i.variables)
	if err != nil {
		return t, t.failed(err)
	}
	t.Variables = variables
	return t, nil
}

// failed adds the template to an error.
func (t Template) failed(err error) error {
	kind := t.Kind.Kind
	if kind == "" {
		kind = "template"
	}
	return &TemplateError{Kind: kind, Holder: fmt.Sprintf("%s %s/%s", t.Holder.Kind, t.Holder.Namespace, t.Holder.Name), Cause: err}
}
