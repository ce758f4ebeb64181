package topology

import (
	"slices"
	"testing"
)

// FuzzVariablePath: the path of a variable is refused, or written as one that reads the same.
func FuzzVariablePath(f *testing.F) {
	for _, text := range []string{"a", "a.b[0]", `a["x.y"].z`, "a..b", "a[", "a[-1]", "", `a["`, `["a"]`, `a["\u0000"]`} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		steps, err := parse(text)
		if err != nil {
			return
		}
		again, err := parse(text)
		if err != nil || !slices.Equal(steps, again) || len(steps) == 0 {
			t.Errorf("%q is %v and then %v: %v", text, steps, again, err)
		}
	})
}
