package patch

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Selected identifies a template by the criteria of patch selectors. Package topology fills it in for the template that
// the API rejected.
type Selected struct {
	Role Role
	// Class of the worker; empty if the template does not belong to a worker.
	Class            string
	APIVersion, Kind string
}

// Changing is a patch that changes a template, for error messages. [Program.Changing] returns it.
type Changing struct {
	Patch string
	// Variables that its values are computed from, sorted.
	Variables []string
}

// Changing returns the patches that change a template, in order. The topology controller names them in its message when
// the API rejects an object. If fields are given, such as spec.template.spec.files[0], and any patches change one of
// them, only these patches are returned. Changes by extensions are not known, and enabledIf is not evaluated.
func (p *Program) Changing(of Selected, fields []string) []Changing {
	item := Item{Role: of.Role, Class: of.Class, Object: &unstructured.Unstructured{Object: map[string]any{"apiVersion": of.APIVersion, "kind": of.Kind}}}
	var all, some []Changing
	for _, patch := range p.patches {
		if patch.external != nil {
			if patch.external.GeneratePatchesExtension != "" {
				all = append(all, Changing{Patch: patch.name})
			}
			continue
		}
		every, named := Changing{Patch: patch.name}, Changing{Patch: patch.name}
		selected, changes := false, false
		for _, part := range patch.parts {
			if !selects(part.selector, item) {
				continue
			}
			selected = true
			for _, c := range part.changes {
				every.Variables = append(every.Variables, c.reads()...)
				if c.isOfAny(fields) {
					changes = true
					named.Variables = append(named.Variables, c.reads()...)
				}
			}
		}
		if selected {
			all = append(all, every.sorted())
		}
		if changes {
			some = append(some, named.sorted())
		}
	}
	if len(some) > 0 {
		return some
	}
	return all
}

func (c Changing) sorted() Changing {
	slices.Sort(c.Variables)
	c.Variables = slices.Compact(c.Variables)
	return c
}

// reads returns the variables from which the value of a change is computed.
func (c change) reads() []string {
	switch {
	case c.variable != nil:
		return []string{c.variable.Variable()}
	case c.template != nil:
		return c.template.reads.variables
	}
	return nil
}

// isOfAny reports whether a change affects one of the fields, one of their parents or one of their children.
func (c change) isOfAny(fields []string) bool {
	return slices.ContainsFunc(fields, func(field string) bool {
		parts := strings.FieldsFunc(field, func(r rune) bool { return r == '.' || r == '[' || r == ']' })
		for i := range min(len(parts), len(c.path)) {
			if parts[i] != c.path[i] && c.path[i] != "-" {
				return false
			}
		}
		return true
	})
}
