package progress

import "testing"

// A condition's message is one line of a wait, and a log in it is left out.
func TestFlat(t *testing.T) {
	for name, tc := range map[string]struct{ message, want string }{
		"one line": {"it waits", "it waits"},
		"list":     {"* A: one\n* B:\n  * two\n  * three", "A: one; B: two; three"},
		"log": {"* Machine m:\n  * InfrastructureReady: it failed; its last lines:\n      start\n      [error]: no\n  * NodeHealthy: waits",
			"Machine m: InfrastructureReady: it failed; NodeHealthy: waits"},
		"last word": {"It died; its last log lines:\nE1 a\nE2 b", "It died"},
	} {
		if got := flat(tc.message); got != tc.want {
			t.Errorf("%s: %q", name, got)
		}
	}
}
