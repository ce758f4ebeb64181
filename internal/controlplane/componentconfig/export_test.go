package componentconfig

import (
	"maps"
	"slices"
)

// FlagNames returns the sorted names of the flags that can be set on the component, and a description of the valid values of
// each.
func FlagNames(c Component) (names []string, values map[string]string) {
	values = map[string]string{}
	for name, form := range flagsOf(c) {
		values[name] = form.description
	}
	return slices.Sorted(maps.Keys(values)), values
}
