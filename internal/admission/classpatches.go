package admission

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	runtimehooksv1 "sigs.k8s.io/cluster-api/api/runtime/hooks/v1alpha1"

	"github.com/slipwayhq/slipway/internal/topology"
	"github.com/slipwayhq/slipway/internal/topology/patch"
	"github.com/slipwayhq/slipway/internal/topology/variables"
)

// patchRules validates the patches of one ClusterClass, as part of its validation.
type patchRules struct {
	class      *clusterv1.ClusterClass
	names      map[string]bool // variables that the class defines
	runtimeSDK bool
}

// validatePatches validates all patches of a class. It is part of [validateClass].
func validatePatches(r classRequest, path *field.Path) field.ErrorList {
	rules := patchRules{class: r.New, names: map[string]bool{}, runtimeSDK: r.RuntimeSDK}
	for _, v := range r.New.Spec.Variables {
		rules.names[v.Name] = true
	}
	seen := map[string]bool{}
	var errs field.ErrorList
	for i := range r.New.Spec.Patches {
		p, at := &r.New.Spec.Patches[i], path.Index(i)
		errs = append(errs, validatePatchName(p.Name, seen, at.Child("name"))...)
		seen[p.Name] = true
		errs = append(errs, rules.patch(p, at)...)
	}
	return errs
}

// warnClass returns warnings about settings without effect. A template may read an undefined variable: it has no value,
// and the template may handle that. [validateClusterClass] calls it.
func warnClass(r classRequest) []string {
	class := r.New
	names := map[string]bool{runtimehooksv1.BuiltinsName: true}
	for _, v := range class.Spec.Variables {
		names[v.Name] = true
	}
	var out []string
	for _, p := range class.Spec.Patches {
		for _, name := range readBy(p) {
			if !names[name] {
				out = append(out, fmt.Sprintf("templates of patch %s read variable %s, which is not defined in spec.variables and therefore has no value", p.Name, name))
			}
		}
		if p.External != nil && p.EnabledIf != "" {
			out = append(out, fmt.Sprintf("enabledIf of patch %s has no effect, because the patch is external", p.Name))
		}
	}
	return append(out, warnUsers(r)...)
}

// maxWarned is the maximum number of Clusters in warnings.
const maxWarned = 5

// warnUsers returns warnings about Clusters with a value that a changed schema no longer allows. The class is still
// accepted, because these Clusters may be in other namespaces; their topology is not reconciled until the value is
// corrected.
func warnUsers(r classRequest) []string {
	if r.Old == nil {
		return nil
	}
	changed := slices.DeleteFunc(slices.Clone(r.New.Spec.Variables), func(v clusterv1.ClusterClassVariable) bool {
		return !slices.ContainsFunc(r.Old.Spec.Variables, func(was clusterv1.ClusterClassVariable) bool {
			return was.Name == v.Name && !reflect.DeepEqual(was.Schema, v.Schema)
		})
	})
	if len(changed) == 0 {
		return nil
	}
	definitions := variables.NewDefinitions(variables.MergeDefinitions([]variables.Source{{From: clusterv1.VariableDefinitionFromInline, List: changed}}))
	var out []string
	for i := range r.Users {
		user := &r.Users[i]
		for _, name := range definitions.InvalidVariables(&user.Spec.Topology) {
			if len(out) == maxWarned {
				return out
			}
			out = append(out, fmt.Sprintf("Cluster %s/%s: the class no longer allows the value of variable %s; its topology is not reconciled until the value is corrected",
				user.Namespace, user.Name, name))
		}
	}
	return out
}

// readBy returns the names of the variables that the templates of a patch read, without duplicates.
func readBy(p clusterv1.ClusterClassPatch) []string {
	names := patch.Variables(p.EnabledIf)
	for _, d := range p.Definitions {
		for _, change := range d.JSONPatches {
			if change.ValueFrom != nil {
				names = append(names, patch.Variables(change.ValueFrom.Template)...)
			}
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

func validatePatchName(name string, seen map[string]bool, path *field.Path) field.ErrorList {
	switch {
	case name == "":
		return field.ErrorList{field.Required(path, "a patch needs a name")}
	case name == clusterv1.VariableDefinitionFromInline:
		return field.ErrorList{field.Invalid(path, name, "is reserved for variable definitions in the class; choose another name")}
	case seen[name]:
		return field.ErrorList{field.Duplicate(path, name)}
	}
	return nil
}

func (r patchRules) patch(p *clusterv1.ClusterClassPatch, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if p.EnabledIf != "" {
		if err := patch.CheckTemplate(p.EnabledIf); err != nil {
			errs = append(errs, field.Invalid(path.Child("enabledIf"), p.EnabledIf, err.Error()))
		}
	}
	switch {
	case p.External != nil && len(p.Definitions) > 0:
		return append(errs, field.Forbidden(path, "external and definitions cannot be set together; split the patch"))
	case p.External != nil:
		return append(errs, r.external(p, path)...)
	case len(p.Definitions) == 0:
		return append(errs, field.Required(path, "one of definitions and external must be set"))
	}
	for i := range p.Definitions {
		at := path.Child("definitions").Index(i)
		errs = append(errs, r.selector(p.Definitions[i].Selector, at.Child("selector"))...)
		if len(p.Definitions[i].JSONPatches) == 0 {
			errs = append(errs, field.Required(at.Child("jsonPatches"), "a definition needs at least one change"))
		}
		for n, change := range p.Definitions[i].JSONPatches {
			errs = append(errs, r.change(change, at.Child("jsonPatches").Index(n))...)
		}
	}
	return errs
}

func (r patchRules) external(p *clusterv1.ClusterClassPatch, path *field.Path) field.ErrorList {
	at := path.Child("external")
	if !r.runtimeSDK {
		return field.ErrorList{field.Forbidden(at, "requires the feature gate RuntimeSDK")}
	}
	if p.External.GeneratePatchesExtension == "" && p.External.ValidateTopologyExtension == "" {
		return field.ErrorList{field.Required(at, "one of generatePatchesExtension and validateTopologyExtension must be set")}
	}
	return nil
}

// selector checks that a selector matches a template of the class.
func (r patchRules) selector(s clusterv1.PatchSelector, path *field.Path) field.ErrorList {
	match, at := s.MatchResources, path.Child("matchResources")
	deployments, pools := match.MachineDeploymentClass, match.MachinePoolClass
	if !ptr.Deref(match.ControlPlane, false) && !ptr.Deref(match.InfrastructureCluster, false) &&
		(deployments == nil || len(deployments.Names) == 0) && (pools == nil || len(pools.Names) == 0) {
		return field.ErrorList{field.Required(at, "must select infrastructureCluster, controlPlane, or classes of workers by name")}
	}
	var errs field.ErrorList
	missing := fmt.Sprintf("selects no template of %s %s in the class", s.APIVersion, s.Kind)
	is := func(refs ...clusterv1.ClusterClassTemplateReference) bool {
		return slices.ContainsFunc(refs, func(ref clusterv1.ClusterClassTemplateReference) bool {
			return ref.APIVersion == s.APIVersion && ref.Kind == s.Kind
		})
	}
	spec := r.class.Spec
	if ptr.Deref(match.InfrastructureCluster, false) && !is(spec.Infrastructure.TemplateRef) {
		errs = append(errs, field.Invalid(at.Child("infrastructureCluster"), true, missing))
	}
	if ptr.Deref(match.ControlPlane, false) && !is(spec.ControlPlane.TemplateRef, spec.ControlPlane.MachineInfrastructure.TemplateRef) {
		errs = append(errs, field.Invalid(at.Child("controlPlane"), true, missing))
	}
	classes := topology.WorkerClasses(r.class)
	selected := func(role topology.Role, names []string, path *field.Path) {
		for i, name := range names {
			selects := slices.ContainsFunc(classes, func(c topology.WorkerClass) bool {
				return c.Role == role && patch.MatchesAny([]string{name}, c.Worker) && is(c.Bootstrap, c.Infrastructure)
			})
			errs = append(errs, validateSelected(name, path.Index(i), missing, selects)...)
		}
	}
	if deployments != nil {
		selected(topology.Deployment, deployments.Names, at.Child("machineDeploymentClass", "names"))
	}
	if pools != nil {
		selected(topology.Pool, pools.Names, at.Child("machinePoolClass", "names"))
	}
	return errs
}

// validateSelected validates the name of a worker class in a selector.
func validateSelected(name string, path *field.Path, missing string, selects bool) field.ErrorList {
	stars := strings.Count(name, "*")
	if stars > 1 || stars == 1 && !strings.HasPrefix(name, "*") && !strings.HasSuffix(name, "*") {
		return field.ErrorList{field.Invalid(path, name, "may have one *, at the beginning or the end")}
	}
	if !selects {
		return field.ErrorList{field.Invalid(path, name, missing)}
	}
	return nil
}

func (r patchRules) change(c clusterv1.JSONPatch, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	switch c.Op {
	case "add", "replace":
		errs = append(errs, r.value(c, path)...)
	case "remove":
		if c.Value != nil || c.ValueFrom != nil {
			errs = append(errs, field.Forbidden(path, "value and valueFrom cannot be set for a removal"))
		}
	default:
		errs = append(errs, field.NotSupported(path.Child("op"), c.Op, []string{"add", "replace", "remove"}))
	}
	return append(errs, validatePointer(c, path.Child("path"))...)
}

// validatePointer validates the path of a change, by the rules of Cluster API for inline patches.
func validatePointer(c clusterv1.JSONPatch, path *field.Path) field.ErrorList {
	if !strings.HasPrefix(c.Path, "/spec/") {
		return field.ErrorList{field.Invalid(path, c.Path, "must begin with /spec/: patches change the spec of a template")}
	}
	for _, segment := range strings.Split(c.Path, "/") {
		_, err := strconv.ParseUint(segment, 10, 64)
		switch index := err == nil; {
		case c.Op == "add" && index && segment != "0":
			return field.ErrorList{field.Invalid(path, c.Path, "an array index must be 0 (the first) or - (after the last)")}
		case c.Op != "add" && (index || segment == "-"):
			return field.ErrorList{field.Invalid(path, c.Path, "must not have an array index: only additions to arrays are possible")}
		}
	}
	return nil
}

func (r patchRules) value(c clusterv1.JSONPatch, path *field.Path) field.ErrorList {
	at := path.Child("valueFrom")
	switch {
	case c.Value == nil && c.ValueFrom == nil:
		return field.ErrorList{field.Required(path, "one of value and valueFrom must be set")}
	case c.Value != nil && c.ValueFrom != nil:
		return field.ErrorList{field.Forbidden(path, "value and valueFrom cannot be set together")}
	case c.Value != nil:
		if _, err := (variables.Values{"value": *c.Value}).Decode(); err != nil {
			return field.ErrorList{field.Invalid(path.Child("value"), string(c.Value.Raw), "must be JSON")}
		}
		return nil
	case c.ValueFrom.Variable != "" && c.ValueFrom.Template != "":
		return field.ErrorList{field.Forbidden(at, "variable and template cannot be set together")}
	case c.ValueFrom.Variable != "":
		return r.variable(c.ValueFrom.Variable, at.Child("variable"))
	case c.ValueFrom.Template != "":
		if err := patch.CheckTemplate(c.ValueFrom.Template); err != nil {
			return field.ErrorList{field.Invalid(at.Child("template"), c.ValueFrom.Template, err.Error())}
		}
		return nil
	}
	return field.ErrorList{field.Required(at, "one of variable and template must be set")}
}

// variable checks that the variable of a change is defined.
func (r patchRules) variable(text string, path *field.Path) field.ErrorList {
	parsed, err := variables.ParsePath(text)
	switch {
	case err != nil:
		return field.ErrorList{field.Invalid(path, text, err.Error())}
	case parsed.Variable() == runtimehooksv1.BuiltinsName:
		if !variables.IsBuiltin(parsed) {
			return field.ErrorList{field.Invalid(path, text, "is not a part of the variable builtin")}
		}
	case !r.names[parsed.Variable()]:
		return field.ErrorList{field.Invalid(path, text, fmt.Sprintf("variable %s is not defined in spec.variables", parsed.Variable()))}
	}
	return nil
}
