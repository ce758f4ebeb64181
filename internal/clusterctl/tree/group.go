package tree

import (
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// messagesShown is how many messages of one condition the row of a group repeats.
const messagesShown = 10

// group turns machines in the same state into one row, which stands where the first of them stood. A machine
// with rows below it, whose conditions were asked for, or that is about to be remediated, stays alone.
func (b builder) group(machines []*Object) []*Object {
	if !b.Grouping {
		return machines
	}
	var rows []*Object
	members, at := map[string][]*Object{}, map[string]int{}
	for _, m := range machines {
		if len(m.Children) > 0 || m.ShowConditions || m.Remediation != nil {
			rows = append(rows, m)
			continue
		}
		key := m.state()
		if _, ok := members[key]; !ok {
			at[key] = len(rows)
			rows = append(rows, m)
		}
		members[key] = append(members[key], m)
	}
	for key, group := range members {
		if len(group) > 1 {
			rows[at[key]] = join(group)
		}
	}
	return rows
}

// state is what machines of one group have in common. Messages and times may differ.
func (o *Object) state() string {
	key := fmt.Sprint(o.DeletedAt != nil)
	for _, c := range o.Conditions {
		if slices.Contains([]string{"Ready", "Available", "UpToDate", "Paused"}, c.Type) || c.Message != "" && !o.isGood(c) {
			key += fmt.Sprintf("|%s=%s,%s,%s", c.Type, c.Status, c.Severity, c.Reason)
		}
	}
	return key
}

// join makes one row of machines. Its conditions are those that all have in common, each with the latest transition.
func join(members []*Object) *Object {
	first := members[0]
	row := &Object{APIVersion: first.APIVersion, Kind: first.Kind, Namespace: first.Namespace, negative: first.negative}
	for _, m := range members {
		row.Members = append(row.Members, m.Name)
		row.Replicas = row.Replicas.add(m.Replicas)
		row.DeletedAt = later(row.DeletedAt, m.DeletedAt)
	}
	for _, c := range first.Conditions {
		if joined, ok := joinCondition(c, members); ok {
			row.Conditions = append(row.Conditions, joined)
		}
	}
	return row
}

// joinCondition is the condition of a group; false: not all members have it. Where messages differ each is said with the
// machine that it is about.
func joinCondition(c Condition, members []*Object) (Condition, bool) {
	var lines []string
	differ := false
	for _, m := range members {
		other := m.Condition(c.Type)
		if other == nil || other.Status != c.Status || other.Reason != c.Reason {
			return Condition{}, false
		}
		if c.LastTransitionTime.Before(&other.LastTransitionTime) {
			c.LastTransitionTime = other.LastTransitionTime
		}
		differ = differ || other.Message != c.Message
		if other.Message != "" {
			lines = append(lines, "* "+m.Name+": "+strings.TrimPrefix(strings.ReplaceAll(other.Message, "\n", "\n  "), "* "))
		}
	}
	if differ {
		if more := len(lines) - messagesShown; more > 0 {
			lines = append(lines[:messagesShown], fmt.Sprintf("And %d more; --grouping=false shows all", more))
		}
		c.Message = strings.Join(lines, "\n")
	}
	return c, true
}

func later(a, b *metav1.Time) *metav1.Time {
	if a.Before(b) {
		return b
	}
	return a
}
