package inplace

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/slipwayhq/slipway/sdk/extension/patch"
)

// Rule specifies the changes that the extension can make to objects of one kind. Create it with [For] or [Fields].
type Rule struct {
	kind  schema.GroupVersionKind
	pairs bool // it also applies to the template of the kind
	apply func(ctx context.Context, p part, object []byte) ([]byte, error)
}

// For returns a rule for objects of an apiVersion and kind, decoded as a T. do modifies current to the state after the
// update by the extension. The resulting changes of the spec are covered. Templates, which CanUpdateMachineSet handles,
// are a different kind and need their own rule. The core kinds are Machine and MachineSet.
func For[T any](apiVersion, kind string, do func(ctx context.Context, current, desired *T) error) Rule {
	return Rule{kind: schema.FromAPIVersionAndKind(apiVersion, kind), apply: func(ctx context.Context, p part, object []byte) ([]byte, error) {
		desired := new(T)
		if err := json.Unmarshal(p.desired, desired); err != nil {
			return nil, fmt.Errorf("reading the desired object as %T: %w", *desired, err)
		}
		return patch.Typed(object, func(current *T) error { return do(ctx, current, desired) })
	}}
}

// Fields returns a rule that covers every change of the fields, which are dotted paths relative to the spec:
// Fields("infrastructure.example.org/v1", "ExampleMachine", "memory", "disks.data"). The rule also applies to the
// template of the kind, ExampleMachineTemplate, relative to spec.template.spec; a rule for Machine also applies to
// MachineSet.
func Fields(apiVersion, kind string, fields ...string) Rule {
	return Rule{kind: schema.FromAPIVersionAndKind(apiVersion, kind), pairs: true, apply: func(_ context.Context, p part, object []byte) ([]byte, error) {
		current, err := decode(object)
		if err != nil {
			return nil, err
		}
		desired, err := decode(p.desired)
		if err != nil {
			return nil, err
		}
		for _, f := range fields {
			path := append(slices.Clone(p.root), strings.Split(f, ".")...)
			value, there := lookup(desired, path)
			set(current, path, value, there)
		}
		return json.Marshal(current)
	}}
}

// isFor reports whether the rule applies to an object. For Machine and MachineSet, which are already decoded, any
// version matches.
func (r Rule) isFor(p part) bool {
	if r.kind.Group != p.group || p.version != "" && r.kind.Version != p.version {
		return false
	}
	return r.kind.Kind == p.kind || r.pairs && p.kind == templateOf(r.kind.Kind)
}

func templateOf(kind string) string {
	if kind == "Machine" {
		return "MachineSet"
	}
	return kind + "Template"
}

// The path of the spec in an object of a machine, and in a template.
var (
	machineRoot  = []string{"spec"}
	templateRoot = []string{"spec", "template", "spec"}
)

// part is one object of a request.
type part struct {
	group, version, kind string // version is empty for core Cluster API kinds
	root                 []string
	current, desired     []byte
}

// identify sets group, version and kind of a provider object.
func (p *part) identify() error {
	if p.kind != "" {
		return nil
	}
	var meta struct{ APIVersion, Kind string }
	if err := json.Unmarshal(p.current, &meta); err != nil {
		return fmt.Errorf("the request holds something else than an object: %w", err)
	}
	k := schema.FromAPIVersionAndKind(meta.APIVersion, meta.Kind)
	p.group, p.version, p.kind = k.Group, k.Version, k.Kind
	return nil
}

// within returns the object with the value at root from the changed object.
func within(root []string, object, changed []byte) ([]byte, error) {
	before, err := decode(object)
	if err != nil {
		return nil, err
	}
	after, err := decode(changed)
	if err != nil {
		return nil, err
	}
	value, there := lookup(after, root)
	set(before, root, value, there)
	return json.Marshal(before)
}

// decode preserves the representation of numbers.
func decode(data []byte) (map[string]any, error) {
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	var out map[string]any
	if err := d.Decode(&out); err != nil {
		return nil, fmt.Errorf("the request holds something else than an object: %w", err)
	}
	return out, nil
}

func lookup(object map[string]any, path []string) (any, bool) {
	for _, name := range path[:len(path)-1] {
		below, ok := object[name].(map[string]any)
		if !ok {
			return nil, false
		}
		object = below
	}
	value, ok := object[path[len(path)-1]]
	return value, ok
}

// set sets a field, or removes it if there is false.
func set(object map[string]any, path []string, value any, there bool) {
	for _, name := range path[:len(path)-1] {
		below, ok := object[name].(map[string]any)
		if !ok {
			if !there {
				return
			}
			below = map[string]any{}
			object[name] = below
		}
		object = below
	}
	if there {
		object[path[len(path)-1]] = value
	} else {
		delete(object, path[len(path)-1])
	}
}

// joinSorted joins errors sorted by text, so that the same problems result in the same message.
func joinSorted(problems []error) error {
	slices.SortFunc(problems, func(a, b error) int { return cmp.Compare(a.Error(), b.Error()) })
	return errors.Join(problems...)
}
