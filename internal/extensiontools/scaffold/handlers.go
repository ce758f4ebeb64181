package scaffold

import (
	"fmt"
	"slices"
	"strings"

	"github.com/slipwayhq/slipway/internal/extensiontools"
	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/sdk/hooks"
)

// Handler is a handler in the project, as the templates use it. A change of its fields also affects the files in
// project/ and hooks/.
type Handler struct {
	// Hook is the hook that it handles, and Name the name for discovery.
	Hook, Name string
	// Func is its Go expression, and On the constructor in package extension for it.
	Func, On string
	// Summary describes the hook, and Blocking reports whether it can block its caller.
	Summary  string
	Blocking bool

	// template is the template of its source, and file the base name of its files.
	template, file string
}

// defaultHooks returns the hooks of a project if none are specified.
func defaultHooks() []string { return []string{"BeforeClusterCreate", "GeneratePatches"} }

// special returns the hooks that need more than a function, with their templates in hooks/. Func must be an expression
// that the template defines.
func special() map[string]Handler {
	return map[string]Handler{
		"BeforeClusterCreate": {Name: "check-owner", Func: "checkOwner", On: "OnErr", template: "before_cluster_create"},
		"GeneratePatches":     {Name: "set-image", Func: "patches.Generate", On: "On", template: "generate_patches"},
		"ValidateTopology":    {Name: "check-image", Func: "checks.Validate", On: "On", template: "validate_topology"},
		"DiscoverVariables":   {Name: "variables", Func: "discoverVariables", On: "OnErr", template: "discover_variables"},
		"GenerateUpgradePlan": {Name: "upgrade-plan", Func: "plans.Generate", On: "OnErr", template: "generate_upgrade_plan"},
		"CanUpdateMachine":    {Func: "updates.CanUpdateMachine", On: "OnErr", template: "in_place"},
		"CanUpdateMachineSet": {Func: "updates.CanUpdateMachineSet", On: "OnErr", template: "in_place"},
		"UpdateMachine":       {Func: "updateMachine", On: "OnErr", template: "in_place"},
	}
}

// Handlers returns the handlers of the project in the order of a cluster's lifecycle. An extension for in-place updates
// of Machines has all three hooks for it. [Write] calls it.
func (o Options) Handlers() ([]Handler, error) {
	wanted := map[string]bool{}
	names := o.Hooks
	if len(names) == 0 {
		names = defaultHooks()
	}
	for _, name := range names {
		r, err := extensiontools.GetExample(name)
		if err != nil {
			return nil, err
		}
		switch {
		case r.Hook.Singleton:
			return nil, fault.New(fault.Invalid, "Hook", "the hook %s is answered by the SDK; name hooks that the extension is for", r.Hook.ID.Hook)
		case r.Hook.Tag == hooks.TagInPlace:
			wanted["CanUpdateMachine"], wanted["CanUpdateMachineSet"], wanted["UpdateMachine"] = true, true, true
		}
		wanted[r.Hook.ID.Hook] = true
	}
	var out []Handler
	for _, h := range extensiontools.ExampleHooks() {
		if wanted[h.ID.Hook] {
			out = append(out, handlerOf(h))
		}
	}
	return out, nil
}

func handlerOf(h hooks.Hook) Handler {
	name := h.ID.Hook
	out, ok := special()[name]
	if !ok {
		out = Handler{Func: strings.ToLower(name[:1]) + name[1:], On: "OnErr", template: "lifecycle"}
	}
	out.Hook, out.Summary, out.Blocking = name, h.Summary, h.Blocking()
	if out.Name == "" {
		out.Name = extensiontools.FileName(name)
	}
	if out.file = out.template; out.template == "lifecycle" {
		out.file = strings.ReplaceAll(extensiontools.FileName(name), "-", "_")
	}
	return out
}

// addHandlers adds the sources of the handlers, their tests, and a request for each hook. [Write] calls it.
func (o Options) addHandlers(files map[string][]byte, handlers []Handler) error {
	for _, h := range handlers {
		for _, ending := range []string{".go", "_test.go"} {
			text, err := fill("hooks/"+h.template+ending+".tmpl", h)
			if err != nil {
				return err
			}
			files[h.file+ending] = text
		}
		request, err := extensiontools.GetExample(h.Hook)
		if err != nil {
			return err
		}
		files["testdata/"+extensiontools.FileName(h.Hook)+".yaml"] = fmt.Appendf(nil,
			"# A request of the hook %s, as `slipway extension call` and the tests send it.\n%s", h.Hook, request.YAML)
	}
	return nil
}

// Sources returns the sorted source files of the handlers, for the README.
func (p project) Sources() []string {
	var out []string
	for _, h := range p.Handlers {
		out = append(out, h.file+".go")
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// First returns the name and request file of a handler to try first. The README has it.
func (p project) First() string {
	h := p.Handlers[0]
	return h.Name + " -f testdata/" + extensiontools.FileName(h.Hook) + ".yaml"
}
