package variables

import "testing"

// FuzzPath: whatever a class names as a variable is refused, or is looked for without harm.
func FuzzPath(f *testing.F) { // TP-13
	for _, text := range []string{"a", "a.b[0].c", "a[1][2]", "builtin.cluster.name", "a[", "a..b", "[0]", "a[99999999999]"} {
		f.Add(text)
	}
	values := map[string]any{"a": map[string]any{"b": []any{map[string]any{"c": "x"}, "y"}}, "builtin": "z"}
	f.Fuzz(func(t *testing.T, text string) {
		p, err := ParsePath(text)
		if err != nil {
			return
		}
		if p.String() != text || len(p.Fields()) == 0 || p.Fields()[0] != p.Variable() || p.Variable() == "" {
			t.Errorf("%q is read as %q, %q of variable %q", text, p, p.Fields(), p.Variable())
		}
		if value, found, err := p.Find(values); found && err != nil || !found && value != nil {
			t.Errorf("%q finds %v, %v: %v", text, value, found, err)
		}
	})
}
