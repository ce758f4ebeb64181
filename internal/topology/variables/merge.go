package variables

import (
	"maps"
	"reflect"
	"slices"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// Source is a source of definitions: VariableDefinitionFromInline, or the name of the patch whose extension defines
// them. The ClusterClass controller merges the definitions of all sources with [MergeDefinitions].
type Source struct {
	From string
	List []clusterv1.ClusterClassVariable
}

// MergeDefinitions returns the variables of a class sorted by name, each with its definitions in the order of the
// sources. Definitions of one variable that are not equal are in conflict. The ClusterClass controller writes the
// result to the status of the class; the form is Cluster API's.
func MergeDefinitions(sources []Source) []clusterv1.ClusterClassStatusVariable {
	byName := map[string]*clusterv1.ClusterClassStatusVariable{}
	for _, source := range sources {
		for _, v := range source.List {
			merged := byName[v.Name]
			if merged == nil {
				merged = &clusterv1.ClusterClassStatusVariable{Name: v.Name, DefinitionsConflict: new(false)}
				byName[v.Name] = merged
			}
			d := clusterv1.ClusterClassStatusVariableDefinition{
				From: source.From, Required: v.Required, DeprecatedV1Beta1Metadata: v.DeprecatedV1Beta1Metadata, Schema: v.Schema,
			}
			if len(merged.Definitions) > 0 && !isSameDefinition(merged.Definitions[0], d) {
				merged.DefinitionsConflict = new(true)
			}
			merged.Definitions = append(merged.Definitions, d)
		}
	}
	out := make([]clusterv1.ClusterClassStatusVariable, 0, len(byName))
	for _, name := range slices.Sorted(maps.Keys(byName)) {
		out = append(out, *byName[name])
	}
	return out
}

// isSameDefinition compares the definitions of a variable from two sources.
func isSameDefinition(a, b clusterv1.ClusterClassStatusVariableDefinition) bool {
	a.From = b.From
	return reflect.DeepEqual(a, b)
}

// DefinitionsFrom returns the variables in a class's status that come from a source. The ClusterClass controller needs
// the previous variables of an extension to validate the new ones.
func DefinitionsFrom(list []clusterv1.ClusterClassStatusVariable, from string) []clusterv1.ClusterClassVariable {
	var out []clusterv1.ClusterClassVariable
	for _, v := range list {
		for _, d := range v.Definitions {
			if d.From == from {
				out = append(out, clusterv1.ClusterClassVariable{
					Name: v.Name, Required: d.Required, DeprecatedV1Beta1Metadata: d.DeprecatedV1Beta1Metadata, Schema: d.Schema,
				})
			}
		}
	}
	return out
}
