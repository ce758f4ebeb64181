package variables

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// scope is one list of values in a topology: the values for all objects, or the overrides for a part.
type scope struct {
	path *field.Path
	// key identifies the scope within the topology, to find the previous values.
	key string
	// overrides means that the list may only override values of the topology.
	overrides bool
	list      *[]clusterv1.ClusterVariable
}

// scopes returns the lists of values in a topology: the values for all objects, then the overrides.
func scopes(t *clusterv1.Topology, path *field.Path) []scope {
	out := []scope{
		{path: path.Child("variables"), list: &t.Variables},
		{path: path.Child("controlPlane", "variables", "overrides"), key: "controlPlane", overrides: true, list: &t.ControlPlane.Variables.Overrides},
	}
	workers := path.Child("workers")
	for i := range t.Workers.MachineDeployments {
		d := &t.Workers.MachineDeployments[i]
		out = append(out, scope{
			path: workers.Child("machineDeployments").Key(d.Name).Child("variables", "overrides"),
			key:  "machineDeployment/" + d.Name, overrides: true, list: &d.Variables.Overrides,
		})
	}
	for i := range t.Workers.MachinePools {
		p := &t.Workers.MachinePools[i]
		out = append(out, scope{
			path: workers.Child("machinePools").Key(p.Name).Child("variables", "overrides"),
			key:  "machinePool/" + p.Name, overrides: true, list: &p.Variables.Overrides,
		})
	}
	return out
}

// Default sets missing values, and missing parts of values, for which the class has defaults. It changes the topology
// in place, and reports whether it did. Invalid values are left to Validate. The webhook of Clusters calls both; the
// topology controller does so too, because a class may have been created after its Clusters.
func (d *Definitions) Default(t *clusterv1.Topology) (changed bool) {
	for _, s := range scopes(t, nil) {
		for i, v := range *s.list {
			if value, filled := d.fill(v); filled {
				(*s.list)[i].Value, changed = value.Value, true
			}
		}
		if s.overrides {
			continue
		}
		for _, definition := range d.order {
			if value, ok := definition.fallback(*s.list); ok {
				*s.list = append(*s.list, value)
				changed = true
			}
		}
	}
	return changed
}

// fill sets missing parts of a value that have defaults.
func (d *Definitions) fill(v clusterv1.ClusterVariable) (clusterv1.ClusterVariable, bool) {
	definition := d.byName[v.Name]
	if definition == nil || definition.conflict || definition.isKnown(isComplete, v.Value) {
		return v, false
	}
	c, err := definition.compiled()
	if err != nil {
		return v, false
	}
	value, changed, err := c.defaulted(v.Value)
	if err == nil && !changed {
		definition.cacheResult(isComplete, v.Value)
	}
	if err != nil || !changed {
		return v, false
	}
	v.Value = value
	return v, true
}

// fallback returns the default value of a variable that is missing in the list.
func (d *definition) fallback(list []clusterv1.ClusterVariable) (clusterv1.ClusterVariable, bool) {
	if d.conflict || d.schema.Default == nil ||
		slices.ContainsFunc(list, func(v clusterv1.ClusterVariable) bool { return v.Name == d.name }) {
		return clusterv1.ClusterVariable{}, false
	}
	c, err := d.compiled()
	if err != nil {
		return clusterv1.ClusterVariable{}, false
	}
	value, _, err := c.defaulted(*d.schema.Default)
	return clusterv1.ClusterVariable{Name: d.name, Value: value}, err == nil
}

// Validate validates all values in a topology; old is the previous topology, or nil. Default must be called first. The
// webhook of Clusters and package clusterctl/template call it.
func (d *Definitions) Validate(t, old *clusterv1.Topology, path *field.Path) field.ErrorList {
	before := map[string][]clusterv1.ClusterVariable{}
	if old != nil {
		for _, s := range scopes(old, nil) {
			before[s.key] = *s.list
		}
	}
	var errs field.ErrorList
	for _, s := range scopes(t, path) {
		errs = append(errs, d.validateScope(s, before[s.key])...)
	}
	return errs
}

// InvalidVariables returns the names of the variables for which a topology has an invalid value, without duplicates.
// The webhook of ClusterClasses warns about Clusters whose values a changed schema makes invalid.
func (d *Definitions) InvalidVariables(t *clusterv1.Topology) []string {
	var out []string
	for _, s := range scopes(t, field.NewPath("spec", "topology")) {
		for _, v := range *s.list {
			if d.byName[v.Name] != nil && len(d.validateValue(v, nil, s.path)) > 0 {
				out = append(out, v.Name)
			}
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

func (d *Definitions) validateScope(s scope, old []clusterv1.ClusterVariable) field.ErrorList {
	var errs field.ErrorList
	given := make(map[string]bool, len(*s.list))
	for _, v := range *s.list {
		at := s.path.Key(v.Name)
		if given[v.Name] {
			errs = append(errs, field.Duplicate(at, v.Name))
			continue
		}
		given[v.Name] = true
		errs = append(errs, d.validateValue(v, find(old, v.Name), at)...)
	}
	if s.overrides {
		return errs
	}
	for _, definition := range d.order {
		if definition.required && !given[definition.name] {
			errs = append(errs, field.Required(s.path, fmt.Sprintf("variable %s is required: set it", definition.name)))
		}
	}
	return errs
}

func (d *Definitions) validateValue(v clusterv1.ClusterVariable, old *clusterv1.ClusterVariable, path *field.Path) field.ErrorList {
	definition := d.byName[v.Name]
	switch {
	case definition == nil:
		return field.ErrorList{field.Invalid(path, v.Name, "variable is not defined in the ClusterClass, which has "+d.names()+"; remove it")}
	case definition.conflict:
		return field.ErrorList{field.Invalid(path, v.Name,
			"the ClusterClass and its extensions define the variable differently: make the definitions equal, or rename one of them")}
	}
	if old == nil && definition.isKnown(isValid, v.Value) {
		return nil
	}
	c, err := definition.compiled()
	if err != nil {
		return field.ErrorList{field.Invalid(path, v.Name, "the schema of the variable in the ClusterClass is invalid: "+err.Error())}
	}
	value, err := decode(v.Value)
	if err != nil {
		return field.ErrorList{field.Invalid(path.Child("value"), string(v.Value.Raw), "must be JSON")}
	}
	var before any
	if old != nil {
		if before, err = decode(old.Value); err != nil {
			before = nil
		}
	}
	errs := c.validate(value, before, path.Child("value"))
	definition.describe(errs, value, path.Child("value"))
	if old == nil && len(errs) == 0 {
		definition.cacheResult(isValid, v.Value)
	}
	return errs
}

// names returns the names of the variables, for messages.
func (d *Definitions) names() string {
	var names []string
	for _, definition := range d.order {
		names = append(names, definition.name)
	}
	if len(names) == 0 {
		return "none"
	}
	slices.Sort(names)
	return strings.Join(names, ", ")
}

// describe adds the description in the schema to errors about the whole value, and includes the value itself if its
// type is wrong.
func (d *definition) describe(errs field.ErrorList, value any, path *field.Path) {
	for _, err := range errs {
		err.Detail = strings.TrimSpace(err.Detail)
		if err.Field != path.String() {
			continue
		}
		if strings.Contains(err.Detail, "must be of type") {
			err.BadValue = value
		}
		if d.schema.Description != "" {
			err.Detail += " (" + d.schema.Description + ")"
		}
	}
}

func find(list []clusterv1.ClusterVariable, name string) *clusterv1.ClusterVariable {
	for i := range list {
		if list[i].Name == name {
			return &list[i]
		}
	}
	return nil
}
