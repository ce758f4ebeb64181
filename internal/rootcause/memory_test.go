package rootcause

import "testing"

// Plans are stored for objects that exist, and removed if there are none.
func TestSetPlans(t *testing.T) {
	g := memory(worker())
	of := refTo("Machine c-w1")
	g.SetPlans(of, []Plan{{Controller: "machine"}})
	g.SetPlans(refTo("Machine gone"), []Plan{{Controller: "machine"}})
	if len(g.plans) != 1 || len(g.Plans(of)) != 1 {
		t.Errorf("plans: %v", g.plans)
	}
	g.SetPlans(of, nil)
	if len(g.plans) != 0 {
		t.Errorf("plans remain: %v", g.plans)
	}
}

// Items of a list are separated, because several problems in one line are not one sentence.
func TestOneLine(t *testing.T) {
	for message, want := range map[string]string{
		"it ended":                             "it ended",
		"* it ended":                           "it ended",
		"* one\n* two\n  * three":              "one; two; three",
		"Problems:\n* one\n* two":              "Problems: one; two",
		"* Machine m:\n  * Ready:  no\n\nmore": "Machine m: Ready: no more",
		"":                                     "",
	} {
		if got := OneLine(message); got != want {
			t.Errorf("%q: got %q, want %q", message, got, want)
		}
	}
}
