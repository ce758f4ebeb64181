package naming

import "testing"

// FuzzParse: whatever a user writes as the template of a name is refused, or makes names that are the same for the same values.
func FuzzParse(f *testing.F) { // MS-06
	for _, text := range []string{
		"{{ .machineSet.name }}-{{ .random }}", "{{ if .cluster.name }}{{ .random }}{{ end }}", "{{ printf \"%s-%5s\" .cluster.name .random }}",
		"{{ with .cluster }}{{ .name }}{{ end }}{{ .random }}", "{{ slice .random 1 3 }}", "{{ range 3 }}{{ end }}{{ .random }}",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		template, err := Parse(text, values("ms"))
		if err != nil {
			return
		}
		name, err := template.Name(values("ms"), "bcdfg")
		if err == nil && len(name) > MaxLength {
			t.Errorf("%q makes %q, which is too long", text, name)
		}
		if again, _ := template.Name(values("ms"), "bcdfg"); again != name {
			t.Errorf("%q makes %q and %q of the same", text, name, again)
		}
	})
}
