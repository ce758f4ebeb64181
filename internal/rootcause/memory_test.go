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
