package patch

import (
	"fmt"
	"slices"
	"strings"

	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/topology/variables"
)

// Reasons of faults. The topology controller checks for ReasonInvalidResponse.
const (
	reasonInvalidPatch    = "PatchInvalid"
	reasonPatchFailed     = "PatchFailed"
	reasonVariableMissing = "VariableMissing"
	ReasonInvalidResponse = "ExtensionAnswerInvalid"
)

// Program is the compiled form of the patches of a class. [Program.Apply] runs it. It is safe for concurrent use, and
// shared by all Clusters of the class.
type Program struct {
	patches []compiledPatch
	class   *clusterv1.ClusterClass
}

// compiledPatch is a patch of a class in its compiled form. [Program.Apply] runs the patches in order.
type compiledPatch struct {
	name     string
	enabled  *valueTemplate // nil: always enabled
	parts    []definition
	external *clusterv1.ExternalPatchDefinition
}

// definition is a selector with the changes to the selected templates. [Compile] creates it for each definition of an
// inline patch.
type definition struct {
	selector clusterv1.PatchSelector
	changes  []change
}

// change is one JSON patch. One of value, variable and template is its value; a removal has none.
type change struct {
	op       string
	path     pointer
	value    any
	variable *variables.Path
	template *valueTemplate
}

// Compile compiles the patches of a class. Package topology caches the result until the class changes.
func Compile(class *clusterv1.ClusterClass) (*Program, error) {
	p := &Program{class: class}
	functions := templateFunctions()
	for i := range class.Spec.Patches {
		patch := &class.Spec.Patches[i]
		compiled, err := compilePatch(patch, functions)
		if err != nil {
			return nil, fault.New(fault.Invalid, reasonInvalidPatch, "Patch %s of ClusterClass %s cannot be used: %v; correct it",
				patch.Name, class.Name, err)
		}
		p.patches = append(p.patches, compiled)
	}
	return p, nil
}

func compilePatch(patch *clusterv1.ClusterClassPatch, functions functions) (compiledPatch, error) {
	out := compiledPatch{name: patch.Name, external: patch.External}
	var err error
	if patch.EnabledIf != "" {
		if out.enabled, err = parseTemplate(patch.EnabledIf, functions); err != nil {
			return out, err
		}
	}
	for _, d := range patch.Definitions {
		compiled := definition{selector: d.Selector}
		for _, j := range d.JSONPatches {
			c, err := compileChange(j, functions)
			if err != nil {
				return out, err
			}
			compiled.changes = append(compiled.changes, c)
		}
		out.parts = append(out.parts, compiled)
	}
	return out, nil
}

func compileChange(j clusterv1.JSONPatch, functions functions) (change, error) {
	c := change{op: j.Op}
	var err error
	if c.path, err = parsePointer(j.Path); err != nil {
		return c, err
	}
	switch {
	case j.Op == "remove":
	case j.Value != nil:
		err = utiljson.Unmarshal(j.Value.Raw, &c.value)
	case j.ValueFrom != nil && j.ValueFrom.Variable != "":
		var path variables.Path
		path, err = variables.ParsePath(j.ValueFrom.Variable)
		c.variable = &path
	case j.ValueFrom != nil && j.ValueFrom.Template != "":
		c.template, err = parseTemplate(j.ValueFrom.Template, functions)
	}
	if err != nil {
		return c, fmt.Errorf("the value for %s: %w", j.Path, err)
	}
	return c, nil
}

// selects reports whether a selector of a patch selects an item, as Cluster API documents it. [Program.Apply] and
// [Program.Changing] call it.
func selects(s clusterv1.PatchSelector, item Item) bool {
	if s.APIVersion != item.Object.GetAPIVersion() || s.Kind != item.Object.GetKind() {
		return false
	}
	match := s.MatchResources
	switch item.Role {
	case InfrastructureCluster:
		return ptr.Deref(match.InfrastructureCluster, false)
	case ControlPlane, ControlPlaneMachines:
		return ptr.Deref(match.ControlPlane, false)
	case DeploymentBootstrap, DeploymentInfrastructure:
		return match.MachineDeploymentClass != nil && MatchesAny(match.MachineDeploymentClass.Names, item.Class)
	case PoolBootstrap, PoolInfrastructure:
		return match.MachinePoolClass != nil && MatchesAny(match.MachinePoolClass.Names, item.Class)
	}
	return false
}

// MatchesAny reports whether one of the names in a selector matches a class of workers. A name may start or end with *.
// The webhook of ClusterClasses uses it too.
func MatchesAny(names []string, class string) bool {
	return slices.ContainsFunc(names, func(name string) bool {
		if end, ok := strings.CutPrefix(name, "*"); ok {
			return strings.HasSuffix(class, end)
		}
		if start, ok := strings.CutSuffix(name, "*"); ok {
			return strings.HasPrefix(class, start)
		}
		return name == class
	})
}
