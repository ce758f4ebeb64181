package extensiontools

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

// ExampleRequest is an example request of a hook. `slipway extension example` prints it, and a new extension project
// contains it as a test input (package scaffold).
type ExampleRequest struct {
	Hook hooks.Hook
	// YAML is the request without apiVersion and kind, which may be omitted in examples.
	YAML string
}

// ExampleHooks returns all hooks that have an example, in the order of a cluster's lifecycle. `slipway extension
// example` lists them, and package scaffold orders handlers by them.
func ExampleHooks() []hooks.Hook {
	var out []hooks.Hook
	catalog := hooks.Default()
	for _, r := range requests() {
		if h, ok := newest(catalog, r.hook); ok {
			out = append(out, h)
		}
	}
	return out
}

// GetExample returns the example of a hook. The name is case-insensitive and may contain hyphens: BeforeClusterCreate,
// before-cluster-create. For an unknown name, the fault lists the valid ones. `slipway extension example` and package
// scaffold call it.
func GetExample(name string) (ExampleRequest, error) {
	plain := func(s string) string { return strings.ToLower(strings.ReplaceAll(s, "-", "")) }
	catalog := hooks.Default()
	for _, r := range requests() {
		if plain(r.hook) == plain(name) {
			h, _ := newest(catalog, r.hook)
			return ExampleRequest{Hook: h, YAML: r.yaml}, nil
		}
	}
	var names []string
	for _, h := range ExampleHooks() {
		names = append(names, h.ID.Hook)
	}
	return ExampleRequest{}, fault.New(fault.Invalid, "UnknownHook", "there is no hook %q; there are: %s", name, strings.Join(names, ", "))
}

func newest(catalog *hooks.Catalog, hook string) (hooks.Hook, bool) {
	return catalog.Newest(hooks.Name{Group: hooks.Group, Hook: hook})
}

// Object returns the request object with apiVersion and kind. Tests check the examples with it.
func (r ExampleRequest) Object() (runtime.Object, error) {
	out := r.Hook.NewRequest()
	if err := yaml.UnmarshalStrict([]byte(r.YAML), out); err != nil {
		return nil, fmt.Errorf("reading the example of %s: %w", r.Hook.ID.Hook, err)
	}
	r.Hook.StampRequest(out)
	return out, nil
}

// Document returns the request as YAML or JSON with apiVersion and kind. `slipway extension example` prints it.
func (r ExampleRequest) Document(asJSON bool) ([]byte, error) {
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

// FileName returns the name of a hook for use in file names and handler names: before-cluster-create. Package scaffold
// names files and handlers with it.
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

// indent indents text to nest it below a field.
func indent(text string) string {
	lines := strings.SplitAfter(text, "\n")
	return "  " + strings.Join(slices.DeleteFunc(lines, func(l string) bool { return l == "" }), "  ")
}
