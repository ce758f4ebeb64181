package describe

import "testing"

// The many lines of a log stay out of the table; the data has them.
func TestWithoutLog(t *testing.T) {
	for name, tc := range map[string]struct{ message, want string }{
		"none":       {"* A: one\n* B: two", "* A: one\n* B: two"},
		"alone":      {"It died (killed); its last log lines:\nE1 a\n  E2 b", "It died (killed)"},
		"in a list":  {"* A: it died; its last log lines:\n  E1 a\n* B: two", "* A: it died\n* B: two"},
		"nested":     {"* A:\n  * P: it died; its last log lines:\n    E1 a\n  * Q: two", "* A:\n  * P: it died\n  * Q: two"},
		"other logs": {"It failed; its last lines:\n  a", "It failed; its last lines:\n  a"},
	} {
		if got := withoutLog(tc.message); got != tc.want {
			t.Errorf("%s: %q", name, got)
		}
	}
}
