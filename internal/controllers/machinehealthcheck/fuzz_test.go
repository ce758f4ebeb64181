package machinehealthcheck

import "testing"

// FuzzRange: a range that a user writes is refused, or has a lowest and a highest number.
func FuzzRange(f *testing.F) { // HC-05
	for _, text := range []string{"[1-5]", "[3-3]", "[5-1]", "1-5", "[-1-5]", "[]", "[1-99999999999999999999]", "[[1-2]]"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if lowest, highest, err := parseRange(text); err == nil && (lowest < 0 || highest < lowest) {
			t.Errorf("%q is from %d to %d", text, lowest, highest)
		}
	})
}
