// Package example has a request of every hook, to begin with: for `slipway extension call`, and for tests.
//
// Does: returns the request of a hook as YAML, with everything that a caller sends and values that belong together.
//
// Owns: the texts of the requests.
//
// Never: is sent by a management cluster.
//
// Read first: [Of].
package example

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/sdk/hooks"
)

// Request is an example.
type Request struct {
	Hook hooks.Hook
	// YAML of the request without apiVersion and kind, which callers of examples may leave out.
	YAML string
}

// Hooks are all hooks that there is an example of, in the order in which a cluster meets them.
func Hooks() []hooks.Hook {
	var out []hooks.Hook
	catalog := hooks.Default()
	for _, r := range requests() {
		if h, ok := newest(catalog, r.hook); ok {
			out = append(out, h)
		}
	}
	return out
}

// Of returns the example of a hook by its name, in any case, with dashes or without: BeforeClusterCreate, before-cluster-create. A
// name that does not exist is a fault that lists those that do.
func Of(name string) (Request, error) {
	plain := func(s string) string { return strings.ToLower(strings.ReplaceAll(s, "-", "")) }
	catalog := hooks.Default()
	for _, r := range requests() {
		if plain(r.hook) == plain(name) {
			h, _ := newest(catalog, r.hook)
			return Request{Hook: h, YAML: r.yaml}, nil
		}
	}
	var names []string
	for _, h := range Hooks() {
		names = append(names, h.ID.Hook)
	}
	return Request{}, fault.New(fault.Invalid, "UnknownHook", "there is no hook %q; there are: %s", name, strings.Join(names, ", "))
}

func newest(catalog *hooks.Catalog, hook string) (hooks.Hook, bool) {
	return catalog.Newest(hooks.Name{Group: hooks.Group, Hook: hook})
}

// Object is the request as it is sent, apiVersion and kind included.
func (r Request) Object() (runtime.Object, error) {
	out := r.Hook.NewRequest()
	if err := yaml.UnmarshalStrict([]byte(r.YAML), out); err != nil {
		return nil, fmt.Errorf("reading the example of %s: %w", r.Hook.ID.Hook, err)
	}
	r.Hook.StampRequest(out)
	return out, nil
}

// Document is the request as YAML with apiVersion and kind, or as JSON.
func (r Request) Document(asJSON bool) ([]byte, error) {
	head := fmt.Sprintf("apiVersion: %s\nkind: %s\n", r.Hook.APIVersion(), r.Hook.RequestKind())
	if !asJSON {
		return []byte(fmt.Sprintf("# %s\n", r.Hook.Summary) + head + r.YAML), nil
	}
	var fields map[string]any
	if err := yaml.Unmarshal([]byte(head+r.YAML), &fields); err != nil {
		return nil, fmt.Errorf("reading the example of %s: %w", r.Hook.ID.Hook, err)
	}
	out, err := json.MarshalIndent(fields, "", "  ")
	return append(out, '\n'), err
}

// FileName is the name of a hook as part of the name of a file: before-cluster-create.
func FileName(hook string) string {
	var b strings.Builder
	for i, r := range hook {
		if i > 0 && 'A' <= r && r <= 'Z' {
			b.WriteByte('-')
		}
		b.WriteRune(r)
	}
	return strings.ToLower(b.String())
}

// indent puts text below a field.
func indent(text string) string {
	lines := strings.SplitAfter(text, "\n")
	return "  " + strings.Join(slices.DeleteFunc(lines, func(l string) bool { return l == "" }), "  ")
}
