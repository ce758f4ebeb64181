package provider

import "testing"

// FuzzReference: what a user types is refused, or written as it was typed.
func FuzzReference(f *testing.F) {
	for _, text := range []string{"aws", "aws:v2.8.0", "ns/aws:v1", "", "a/b/c", "aws:", "Aws", "a:b:c"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if r, err := ParseReference(text); err == nil && r.String() != text {
			t.Errorf("%q is read as %q", text, r)
		}
	})
}
