package describe

import (
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// messagesShown is the maximum number of messages in the condition of a grouped row.
const messagesShown = 10

// group merges the rows of Machines in the same state into one row of the tree at the position of the first of them. A
// machine with children, with conditions shown or with an upcoming remediation is not grouped. [Build] groups the
// Machines of each owner with it.
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
			rows[at[key]] = groupRow(group)
		}
	}
	return rows
}

// state returns the grouping key of a machine. Messages and times are not part of it.
func (o *Object) state() string {
	key := fmt.Sprint(o.DeletedAt != nil)
	for _, c := range o.Conditions {
		if slices.Contains([]string{"Ready", "Available", "UpToDate", "Paused"}, c.Type) || c.Message != "" && !o.hasExpectedStatus(c) {
			key += fmt.Sprintf("|%s=%s,%s,%s", c.Type, c.Status, c.Severity, c.Reason)
		}
	}
	return key
}

// groupRow returns one row for several machines. It has the conditions that all machines have in common, with the
// latest transition time.
func groupRow(members []*Object) *Object {
	first := members[0]
	row := &Object{APIVersion: first.APIVersion, Kind: first.Kind, Namespace: first.Namespace, negative: first.negative}
	for _, m := range members {
		row.Members = append(row.Members, m.Name)
		row.Replicas = row.Replicas.add(m.Replicas)
		row.DeletedAt = later(row.DeletedAt, m.DeletedAt)
	}
	for _, c := range first.Conditions {
		if joined, ok := groupCondition(c, members); ok {
			row.Conditions = append(row.Conditions, joined)
		}
	}
	return row
}

// groupCondition returns the condition of a group, and false if not all members have it. Different messages are listed
// with the name of their machine.
func groupCondition(c Condition, members []*Object) (Condition, bool) {
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
