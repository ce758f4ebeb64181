package tree

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// group turns machines in the same state into one row, which stands where the first of them stood. A machine
// with rows below it, or whose conditions were asked for, stays alone.
func (b builder) group(machines []*Object) []*Object {
	if !b.Grouping {
		return machines
	}
	var rows []*Object
	first := map[string]*Object{}
	for _, m := range machines {
		if len(m.Children) > 0 || m.ShowConditions {
			rows = append(rows, m)
			continue
		}
		key := state(m)
		if g := first[key]; g != nil {
			g.join(m)
			continue
		}
		first[key] = m
		rows = append(rows, m)
	}
	return rows
}

// state is what machines of one group have in common. Messages and times may differ.
func state(m *Object) string {
	key := fmt.Sprint(m.DeletedAt != nil)
	for _, t := range []string{"Ready", "Available", "UpToDate", "Paused"} {
		if c := m.Condition(t); c != nil {
			key += fmt.Sprintf("|%s=%s,%s,%s", t, c.Status, c.Severity, c.Reason)
		}
	}
	return key
}

// join adds a machine to the row, which becomes a group when it was a single machine. The group's conditions
// are those of its members, each with the latest transition.
func (o *Object) join(m *Object) {
	if len(o.Members) == 0 {
		o.Members = []string{o.Name}
		o.Name = ""
	}
	o.Members = append(o.Members, m.Name)
	o.Replicas = o.Replicas.add(m.Replicas)
	kept := o.Conditions[:0:0]
	for _, c := range o.Conditions {
		other := m.Condition(c.Type)
		if other == nil || other.Status != c.Status || other.Reason != c.Reason {
			continue
		}
		if c.LastTransitionTime.Before(&other.LastTransitionTime) {
			c.LastTransitionTime = other.LastTransitionTime
		}
		if other.Message != c.Message {
			c.Message = ""
		}
		kept = append(kept, c)
	}
	o.Conditions = kept
	o.DeletedAt = later(o.DeletedAt, m.DeletedAt)
}

func later(a, b *metav1.Time) *metav1.Time {
	if a.Before(b) {
		return b
	}
	return a
}
