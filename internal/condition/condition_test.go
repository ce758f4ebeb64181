package condition_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/slipwayhq/slipway/internal/condition"
)

type world struct{ infra, node condition.Result }

var table = condition.Table[world]{
	{Type: "InfrastructureReady", Compute: func(w world) condition.Result { return w.infra }},
	{Type: "NodeHealthy", Compute: func(w world) condition.Result { return w.node }},
	{Type: "Ready", Summarize: func(_ world, set condition.Set) condition.Result {
		return condition.Summarize(set, condition.Reasons{Info: "Ready", Issue: "NotReady", Unknown: "ReadyUnknown"},
			condition.Part{Type: "InfrastructureReady"}, condition.Part{Type: "NodeHealthy"},
			condition.Part{Type: "HealthCheckSucceeded", Optional: true})
	}},
}

func cond(t string, s metav1.ConditionStatus, reason, message string) metav1.Condition {
	return metav1.Condition{Type: t, Status: s, Reason: reason, Message: message}
}

func TestEvaluate(t *testing.T) {
	then := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	now := then.Add(time.Hour)
	at := condition.EvaluateOptions{Generation: 3, Now: now, Old: []metav1.Condition{
		{Type: "InfrastructureReady", Status: "True", Reason: "Old", LastTransitionTime: metav1.NewTime(then)},
		{Type: "NodeHealthy", Status: "True", Reason: "Old", LastTransitionTime: metav1.NewTime(then)},
		{Type: "HealthCheckSucceeded", Status: "False", Reason: "UnhealthyNode", Message: "no heartbeat"},
	}}
	got := table.Evaluate(world{infra: condition.True("Ready"), node: condition.Unknown("ConnectionDown", "no answer")}, at)
	want := []metav1.Condition{
		{Type: "InfrastructureReady", Status: "True", Reason: "Ready", ObservedGeneration: 3, LastTransitionTime: metav1.NewTime(then)},
		{Type: "NodeHealthy", Status: "Unknown", Reason: "ConnectionDown", Message: "no answer", ObservedGeneration: 3, LastTransitionTime: metav1.NewTime(now)},
		{Type: "Ready", Status: "False", Reason: "NotReady", ObservedGeneration: 3, LastTransitionTime: metav1.NewTime(now),
			Message: "* HealthCheckSucceeded: no heartbeat\n* NodeHealthy: no answer"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the other writer's condition counts and is not written again; times move with the status only (-want +got):\n%s", diff)
	}
	if got := table.Evaluate(world{node: condition.True("x")}, at); condition.Set(got).Get("InfrastructureReady") != nil {
		t.Error("an absent verdict leaves the condition out")
	}
}

func TestSummarize(t *testing.T) { // CO-01
	reasons := condition.Reasons{Info: "Available", Issue: "NotAvailable", Unknown: "AvailableUnknown"}
	cases := map[string]struct {
		reason string
		set    condition.Set
		parts  []condition.Part
		want   condition.Result
	}{
		"good": {"nothing to say", condition.Set{cond("A", "True", "x", "")}, []condition.Part{{Type: "A"}}, condition.True("Available")},
		"missing": {"a required part that is not there is unknown", nil, []condition.Part{{Type: "A"}},
			condition.Unknown("AvailableUnknown", "* A: Condition not yet reported")},
		"issue before unknown": {"what is wrong is read first",
			condition.Set{cond("A", "Unknown", "x", "who knows"), cond("B", "True", "y", "going")},
			[]condition.Part{{Type: "A"}, {Type: "B", Polarity: condition.Negative}},
			condition.False("NotAvailable", "* B: going\n* A: who knows")},
		"only": {"reasons outside Only are not issues", condition.Set{cond("A", "False", "Upgrading", "busy")},
			[]condition.Part{{Type: "A", Only: []string{"Failed"}}}, condition.TrueBecause("Available", "* A: busy")},
		"nested": {"lists nest", condition.Set{cond("A", "False", "x", "* B: c\n* D: e")}, []condition.Part{{Type: "A"}},
			condition.False("NotAvailable", "* A:\n  * B: c\n  * D: e")},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, condition.Summarize(tc.set, reasons, tc.parts...)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

func member(name string, c ...metav1.Condition) condition.AggregateMember {
	return condition.AggregateMember{Kind: "Machine", Name: name, Conditions: c}
}

func TestAggregate(t *testing.T) { // CO-01
	reasons := condition.Reasons{Info: "Ready", Issue: "NotReady", Unknown: "ReadyUnknown"}
	bad := func(m string) metav1.Condition { return cond("Ready", "False", "NotReady", m) }
	unclear := func(m string) metav1.Condition { return cond("Ready", "Unknown", "x", m) }
	note := func(m string) metav1.Condition { return cond("Ready", "True", "x", m) }
	cases := map[string]struct {
		reason  string
		members []condition.AggregateMember
		part    condition.Part
		want    condition.Result
	}{
		"all good": {"one verdict, no message", []condition.AggregateMember{member("a", cond("Ready", "True", "x", ""))}, condition.Part{Type: "Ready"}, condition.True("Ready")},
		"grouped": {"the same message is said once, the larger group first",
			[]condition.AggregateMember{member("c", bad("disk")), member("a", bad("net")), member("d", bad("net")), member("b", bad("net")), member("e", bad("net"))},
			condition.Part{Type: "Ready"}, condition.False("NotReady", "* Machines a, b, d, ... (1 more): net\n* Machine c: disk")},
		"many": {"three messages are shown",
			[]condition.AggregateMember{member("a", bad("1")), member("b", bad("2")), member("c", bad("3")), member("d", bad("4")), member("e", bad("5"))},
			condition.Part{Type: "Ready"}, condition.False("NotReady", "* Machine a: 1\n* Machine b: 2\n* Machine c: 3\nAnd 2 Machines with other issues")},
		"many unknown": {"the rest is unknown, not an issue",
			[]condition.AggregateMember{member("a", unclear("1")), member("b", unclear("2")), member("c", unclear("3")), member("d", unclear("4"))},
			condition.Part{Type: "Ready"}, condition.Unknown("ReadyUnknown", "* Machine a: 1\n* Machine b: 2\n* Machine c: 3\nAnd 1 Machine with status unknown")},
		"many notes": {"the rest has no issue",
			[]condition.AggregateMember{member("a", note("1")), member("b", note("2")), member("c", note("3")), member("d", note("4")), member("e", note("5"))},
			condition.Part{Type: "Ready"}, condition.TrueBecause("Ready", "* Machine a: 1\n* Machine b: 2\n* Machine c: 3\nAnd 2 Machines with additional info")},
		"missing": {"not yet reported is unknown", []condition.AggregateMember{member("a")}, condition.Part{Type: "Ready"},
			condition.Unknown("ReadyUnknown", "* Machine a: Condition Ready not yet reported")},
		"negative": {"an aggregation of negative conditions is negative", []condition.AggregateMember{member("a", cond("Deleting", "True", "x", "draining"))},
			condition.Part{Type: "Deleting", Polarity: condition.Negative}, condition.TrueBecause("NotReady", "* Machine a: draining")},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, condition.Aggregate(tc.members, tc.part, reasons)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

func TestMessageIsClipped(t *testing.T) { // CO-01
	tbl := condition.Table[string]{{Type: "A", Compute: func(m string) condition.Result { return condition.False("X", m) }}}
	got := tbl.Evaluate(strings.Repeat("é", condition.MaxMessage), condition.EvaluateOptions{})[0].Message
	if len(got) > condition.MaxMessage || !strings.HasSuffix(got, "é …") {
		t.Errorf("message of %d bytes ends %q", len(got), got[len(got)-8:])
	}
}

func TestProject(t *testing.T) { // CO-02
	rows := []condition.V1Beta1Row{
		{Type: "InfrastructureReady", From: "InfrastructureReady", Severity: func(string) clusterv1.ConditionSeverity { return clusterv1.ConditionSeverityWarning }},
		{Type: "ControlPlaneInitialized", From: "ControlPlaneInitialized", Sticky: true},
		{Type: "Absent", From: "Absent"},
	}
	t0 := metav1.NewTime(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	other := clusterv1.Condition{Type: "OfAnotherWriter", Status: "False", Severity: "Error", Reason: "Theirs", Message: "theirs", LastTransitionTime: t0}
	old := clusterv1.Conditions{other, {Type: "Absent", Status: "True"}, {Type: "ControlPlaneInitialized", Status: "True", LastTransitionTime: t0}}
	got := condition.Project(rows, condition.Set{
		cond("InfrastructureReady", "False", "NotReady", "no network"), cond("ControlPlaneInitialized", "False", "x", "y"),
	}, old)
	want := clusterv1.Conditions{
		{Type: "InfrastructureReady", Status: "False", Severity: "Warning", Reason: "NotReady", Message: "no network"},
		{Type: "ControlPlaneInitialized", Status: "True", LastTransitionTime: t0},
		other,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
