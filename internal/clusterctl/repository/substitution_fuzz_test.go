package repository

import "testing"

// FuzzProcess: a template of others is refused, or becomes the same text each time.
func FuzzProcess(f *testing.F) {
	for _, text := range []string{"${A}", "${ A:=x }", "${A:-${B}}", "${A:1:2}", "${A:-1}", "$$A", "${", "${A//x/y}", "${A:7:1}", "${#A}", "${A^^}", "${A:=}", "a: ${A/"} {
		f.Add([]byte(text), "value")
	}
	f.Fuzz(func(t *testing.T, template []byte, value string) {
		all, err := Envsubst{}.Variables(template)
		lookup := func(string) (string, bool) { return value, true }
		out, processed := Envsubst{}.Process(template, lookup)
		if err != nil && processed == nil {
			t.Errorf("%q has variables that cannot be read (%v), and becomes %q", template, err, out)
		}
		if again, err := (Envsubst{}).Process(template, lookup); (err == nil) != (processed == nil) || string(again) != string(out) {
			t.Errorf("%q becomes %q, then %q", template, out, again)
		}
		for i := 1; i < len(all); i++ {
			if all[i-1].Name >= all[i].Name {
				t.Errorf("%q has %q before %q", template, all[i-1].Name, all[i].Name)
			}
		}
	})
}
