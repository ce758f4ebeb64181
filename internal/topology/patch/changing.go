package patch

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Selected names a template as selectors of patches do.
type Selected struct {
	Role Role
	// Class of the worker; empty: the template is not for workers.
	Class            string
	APIVersion, Kind string
}

// Changing is a patch that changes a template.
type Changing struct {
	Patch string
	// Variables that its values are made from, in alphabetical order.
	Variables []string
}

// Changing lists the patches that change a template, in their order. Where fields are given, such as spec.template.spec.files[0], and
// patches change one of them, only these patches are listed. Which fields an extension changes is not known, and whether a patch is
// enabled is not evaluated.
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

// reads are the variables that the value of a change is made from.
func (c change) reads() []string {
	switch {
	case c.variable != nil:
		return []string{c.variable.Variable()}
	case c.template != nil:
		return c.template.reads.variables
	}
	return nil
}

// isOfAny reports whether a change is of one of the fields, of what holds it, or of a part of it.
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
