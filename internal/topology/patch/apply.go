package patch

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/topology/variables"
)

// run is one execution of a program: [Program.Apply] for the templates of one Cluster.
type run struct {
	*Program
	globals   variables.Values
	responses Responses
	items     []Item
	scopes    []scope
	objects   []*unstructured.Unstructured
	// shared caches values that are the same for all items, by template.
	shared map[*valueTemplate]rendered
	// parsed caches values by the output of a template.
	parsed map[string]rendered
}

// scope holds the variables of an item. [run.prepare] creates it once for each item.
type scope struct {
	values map[string]any
	// own holds the variables that are specific to the item, ownBuiltins the item's part of the builtin variable.
	own         map[string]any
	ownBuiltins map[string]any
}

// Apply applies the patches to the items. Package topology calls it for the topology controller, in each
// reconciliation. If responses of extensions are missing, it returns the requests for them and no result. globals are
// the variables of the topology, including the builtin variable.
func (p *Program) Apply(globals variables.Values, items []Item, answers Responses) (Result, []ExtensionRequest, error) {
	r := &run{Program: p, globals: globals, responses: answers, items: items, shared: map[*valueTemplate]rendered{}, parsed: map[string]rendered{}}
	if err := r.prepare(); err != nil {
		return nil, nil, err
	}
	for i := range p.patches {
		patch := &p.patches[i]
		if patch.external != nil {
			question, err := r.generate(patch)
			if err != nil || question != nil {
				return nil, listOf(question), err
			}
			continue
		}
		if err := r.inline(patch); err != nil {
			return nil, nil, err
		}
	}
	if err := r.check(); err != nil {
		return nil, nil, err
	}
	if questions, err := r.validate(); err != nil || len(questions) > 0 {
		return nil, questions, err
	}
	result := make(Result, len(items))
	for i, item := range items {
		result[item.UID] = r.objects[i]
	}
	return result, nil, nil
}

func listOf(q *ExtensionRequest) []ExtensionRequest {
	if q == nil {
		return nil
	}
	return []ExtensionRequest{*q}
}

// prepare decodes the variables and copies the templates.
func (r *run) prepare() error {
	globals, err := r.globals.Decode()
	if err != nil {
		return invalidVariable(err)
	}
	for _, item := range r.items {
		own, err := item.Variables.Decode()
		if err != nil {
			return invalidVariable(fmt.Errorf("%s: %w", item, err))
		}
		s := scope{values: variables.Merge(globals, own), own: own}
		s.ownBuiltins, _ = own[builtin].(map[string]any)
		r.scopes = append(r.scopes, s)
		r.objects = append(r.objects, item.Object.DeepCopy())
	}
	return nil
}

func invalidVariable(err error) error {
	return fault.New(fault.Invalid, reasonVariableMissing, "The variables cannot be read: %v; correct them", err)
}

// inline applies an inline patch of the class.
func (r *run) inline(patch *compiledPatch) error {
	for i := range r.items {
		for d := range patch.parts {
			part := &patch.parts[d]
			if !selects(part.selector, r.items[i]) {
				continue
			}
			enabled, err := r.isEnabled(patch, i)
			if err != nil {
				return r.failed(patch, i, err)
			}
			if !enabled {
				break
			}
			if err := r.change(part, i); err != nil {
				return r.failed(patch, i, err)
			}
		}
	}
	return nil
}

func (r *run) failed(patch *compiledPatch, i int, err error) error {
	return fault.New(fault.Invalid, reasonPatchFailed, "Patch %s of ClusterClass %s cannot be applied to %s: %v",
		patch.name, r.class.Name, r.items[i], err)
}

func (r *run) isEnabled(patch *compiledPatch, i int) (bool, error) {
	if patch.enabled == nil {
		return true, nil
	}
	out, err := r.render(patch.enabled, i)
	if err != nil {
		return false, fmt.Errorf("enabledIf: %w", err)
	}
	return out.value == true, nil
}

func (r *run) change(part *definition, i int) error {
	for c := range part.changes {
		change := &part.changes[c]
		if !change.path.isOpen() {
			return fmt.Errorf("%s cannot be changed: patches may change only /spec/template/spec, labels and annotations", change.path)
		}
		value, err := r.value(change, i)
		if err != nil {
			return fmt.Errorf("the value for %s: %w", change.path, err)
		}
		if _, err := edit(r.objects[i].Object, change.path, change.op, runtime.DeepCopyJSONValue(value)); err != nil {
			return fmt.Errorf("%s %s: %w", change.op, change.path, err)
		}
	}
	return nil
}

// value returns the value that a change sets.
func (r *run) value(c *change, i int) (any, error) {
	switch {
	case c.template != nil:
		out, err := r.render(c.template, i)
		if err == nil && out.unset {
			err = fmt.Errorf("the template prints a variable without a value; set the variable, or disable the patch without it by enabledIf")
		}
		return out.value, err
	case c.variable != nil:
		value, found, err := c.variable.Find(r.scopes[i].values)
		if err == nil && !found {
			err = fmt.Errorf("variable %s has no value; set it, or disable the patch without it by enabledIf", c.variable)
		}
		return value, err
	}
	return c.value, nil
}

// render evaluates a template for an item, or once for all items if it reads no variable that differs between them.
func (r *run) render(t *valueTemplate, i int) (rendered, error) {
	shared := !t.reads.differs(r.scopes[i])
	if shared {
		if known, ok := r.shared[t]; ok {
			return known, nil
		}
	}
	text, err := t.print(r.scopes[i].values)
	if err != nil {
		return rendered{}, err
	}
	out, known := r.parsed[text]
	if !known {
		if out, err = valueOf(text); err != nil {
			return rendered{}, err
		}
		r.parsed[text] = out
	}
	if shared {
		r.shared[t] = out
	}
	return out, nil
}

// check validates the types of the fields that patches may change. It runs after all patches.
func (r *run) check() error {
	for i, item := range r.items {
		object := r.objects[i].Object
		for _, path := range mutablePaths() {
			value, found, err := unstructured.NestedFieldNoCopy(object, path...)
			if err == nil && (!found || value == nil) {
				continue
			}
			switch isSpec := path[len(path)-1] == "spec"; {
			case err != nil:
			case !isSpec:
				_, _, err = unstructured.NestedStringMap(object, path...)
			default:
				if _, isObject := value.(map[string]any); !isObject {
					err = fmt.Errorf("it is not an object")
				}
			}
			if err != nil {
				return fault.New(fault.Invalid, reasonPatchFailed, "The patches of ClusterClass %s make %s of %s invalid: %v",
					r.class.Name, path, item, err)
			}
		}
	}
	return nil
}
