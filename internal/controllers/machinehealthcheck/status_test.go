package machinehealthcheck

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"k8s.io/utils/ptr"

	"github.com/slipwayhq/slipway/internal/condition"
	"github.com/slipwayhq/slipway/internal/reconciler"
)

func TestReport(t *testing.T) { // HC-05, HC-09, CO-02
	type want struct {
		Expected, Healthy, Allowed   int32
		Targets                      []string
		Status, Reason, Message      string
		LegacyStatus, LegacySeverity string
		Events                       []string
	}
	for name, tc := range map[string]struct {
		reason string
		s      snapshot
		want   want
	}{
		"all healthy": {"nothing stands against remediation", newSnapshot(check(), healthy("a"), healthy("b")),
			want{2, 2, 2, []string{"a", "b"}, "True", "RemediationAllowed", "", "True", "", nil}},
		"one sick": {"one more may become", newSnapshot(check(), healthy("a"), sick("b")),
			want{2, 1, 1, []string{"a", "b"}, "True", "RemediationAllowed", "", "True", "", nil}},
		"starting": {"not healthy yet", newSnapshot(check(), starting("a")),
			want{1, 0, 0, []string{"a"}, "True", "RemediationAllowed", "", "True", "", nil}},
		"deleting": {"not healthy any more", newSnapshot(check(), target{Machine: machine("a", deleting), Node: node("a", "True", 0), NodeRead: true}),
			want{1, 0, 0, []string{"a"}, "True", "RemediationAllowed", "", "True", "", nil}},
		"too many": {"remediation ends, and an event tells", newSnapshot(check(limited(lessOrEqual(intOrString("1")))), sick("a"), sick("b")),
			want{2, 0, 0, []string{"a", "b"}, "False", "TooManyUnhealthy", "2 of 2 Machines are not started or not healthy, which unhealthyLessThanOrEqualTo 1 does not allow",
				"False", "Warning", []string{"RemediationRestricted"}}},
		"still too many": {"told once", newSnapshot(check(limited(inRange("[2-3]")), func(c *clusterv1.MachineHealthCheck) {
			c.Status.Conditions = append(c.Status.Conditions, condition.Set{{Type: "RemediationAllowed", Status: "False", Reason: "TooManyUnhealthy"}}...)
		}), sick("a", func(m *clusterv1.Machine) {
			m.Status.Conditions = condition.Set{{Type: "HealthCheckSucceeded", Status: "False", Reason: "UnhealthyNode"}}
		})),
			want{1, 0, 0, []string{"a"}, "False", "TooManyUnhealthy", "1 of 1 Machines are not started or not healthy, which unhealthyInRange [2-3] does not allow", "False", "Warning", nil}},
		"more than starting": {"remediation stopped while Machines started, and holds one back now", newSnapshot(check(limited(lessOrEqual(intOrString("0"))), func(c *clusterv1.MachineHealthCheck) {
			c.Status.Conditions = append(c.Status.Conditions, condition.Set{{Type: "RemediationAllowed", Status: "False", Reason: "TooManyUnhealthy"}}...)
		}), sick("a")),
			want{1, 0, 0, []string{"a"}, "False", "TooManyUnhealthy", "1 of 1 Machines are not started or not healthy, which unhealthyLessThanOrEqualTo 0 does not allow", "False", "Warning", []string{"RemediationRestricted"}}},
		"too many start": {"nothing is held back", newSnapshot(check(limited(lessOrEqual(intOrString("0")))), starting("a")),
			want{1, 0, 0, []string{"a"}, "False", "TooManyUnhealthy", "1 of 1 Machines are not started or not healthy, which unhealthyLessThanOrEqualTo 0 does not allow", "False", "Warning", nil}},
		"none is sick": {"HC-05: nothing is held back that is to be done", newSnapshot(check(limited(inRange("[2-3]"))), healthy("a"), healthy("b")),
			want{2, 2, 0, []string{"a", "b"}, "True", "RemediationAllowed", "", "True", "", nil}},
		"unreadable": {"a limit that cannot be read", newSnapshot(check(limited(inRange("[3-2]"))), healthy("a")),
			want{1, 1, 0, []string{"a"}, "False", "InternalError", `spec.remediation.triggerIf.unhealthyInRange: "[3-2]" is not a range; write it like [1-5]`,
				"False", "Warning", []string{"RemediationRestricted"}}},
		"none": {"nothing selected", newSnapshot(check()), want{0, 0, 0, nil, "True", "RemediationAllowed", "", "True", "", nil}},
	} {
		t.Run(name, func(t *testing.T) {
			r := report(tc.s, decide(tc.s), reconciler.Outcome{})
			st := r.Status.(clusterv1.MachineHealthCheckStatus)
			c, l := st.Conditions[0], st.Deprecated.V1Beta1.Conditions[0]
			got := want{*st.ExpectedMachines, *st.CurrentHealthy, *st.RemediationsAllowed, st.Targets, string(c.Status), c.Reason, c.Message,
				string(l.Status), string(l.Severity), nil}
			for _, e := range r.Events {
				got.Events = append(got.Events, e.Reason)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
			if st.ObservedGeneration != 3 {
				t.Errorf("observedGeneration %d", st.ObservedGeneration)
			}
		})
	}
}

func TestReportDisconnected(t *testing.T) { // HC-11
	old := check(func(c *clusterv1.MachineHealthCheck) {
		c.Status = clusterv1.MachineHealthCheckStatus{ExpectedMachines: ptr.To(int32(3)), CurrentHealthy: ptr.To(int32(2)), Targets: []string{"a", "b", "c"},
			Conditions: condition.Set{{Type: "RemediationAllowed", Status: "True", Reason: "RemediationAllowed"}, {Type: "Paused", Status: "False", Reason: "NotPaused"}}}
	})
	s := newSnapshot(old, sick("a"))
	s.Disconnected = "away"
	want := old.Status.DeepCopy()
	want.Conditions = want.Conditions[:1] // the driver adds Paused
	if diff := cmp.Diff(want, report(s, decide(s), reconciler.Outcome{}).Status); diff != "" {
		t.Errorf("what is not known stays as it was (-want +got):\n%s", diff)
	}
}

// An infrastructure that stops being ready, though it was provisioned once, stops the remediation of all Machines.
func TestOutage(t *testing.T) { // HC-03
	const says = "Waiting for the infrastructure of Cluster c to be ready (condition InfrastructureReady); until it is, no Machine is judged or remediated"
	infrastructure := func(status metav1.ConditionStatus) func(*clusterv1.Cluster) {
		return func(c *clusterv1.Cluster) { c.Status.Conditions[1].Status = status }
	}
	for name, tc := range map[string]struct {
		reason  string
		cluster func(*clusterv1.Cluster)
		stops   bool
	}{
		"ready":        {"nothing stands in the way", func(*clusterv1.Cluster) {}, false},
		"not ready":    {"its provider says so", infrastructure("False"), true},
		"unknown":      {"nothing is said, or cannot be read", infrastructure("Unknown"), true},
		"no condition": {"lost in a restore; it comes back", func(c *clusterv1.Cluster) { c.Status.Conditions = c.Status.Conditions[:1] }, true},
		"no reference": {"a Cluster without infrastructure has none to wait for", func(c *clusterv1.Cluster) {
			infrastructure("Unknown")(c)
			c.Spec.InfrastructureRef = clusterv1.ContractVersionedObjectReference{}
		}, false},
	} {
		old := check(func(c *clusterv1.MachineHealthCheck) {
			c.Status.ExpectedMachines, c.Status.CurrentHealthy, c.Status.ObservedGeneration = ptr.To(int32(7)), ptr.To(int32(6)), 2
			c.Status.Conditions = condition.Set{{Type: "RemediationAllowed", Status: "True", Reason: "RemediationAllowed"}}
		})
		s := newSnapshot(old, sick("worker"), sick("plane", controlPlane), sick("marked", annotated(clusterv1.RemediateMachineAnnotation)))
		s.Cluster = cluster(tc.cluster)
		s.Disconnected = map[bool]string{true: "away"}[tc.stops] // an outage takes the connection along, and says more
		p := decide(s)
		marks := 0
		for _, a := range p.Actions {
			if m, ok := a.(mark); ok && m.Wants.Owner.Status == metav1.ConditionFalse {
				marks++
			}
		}
		if want := map[bool]int{false: 3}[tc.stops]; marks != want {
			t.Errorf("%s: %s: %d Machines are remediated, want %d", name, tc.reason, marks, want)
		}
		if !tc.stops {
			continue
		}
		if len(p.Actions) != 0 || len(p.Waits) != 1 || p.Waits[0].Message != says || p.Recheck != 0 {
			t.Errorf("%s: %s: %+v", name, tc.reason, p)
		}
		r := report(s, p, reconciler.Outcome{})
		st := r.Status.(clusterv1.MachineHealthCheckStatus)
		if c := st.Conditions[0]; c.Status != "False" || c.Reason != "NotReady" || c.Message != says || len(r.Events) != 1 {
			t.Errorf("%s: %+v, events %v", name, c, r.Events)
		}
		if *st.ExpectedMachines != 7 || *st.CurrentHealthy != 6 || st.ObservedGeneration != 2 || st.Deprecated.V1Beta1.Conditions[0].Status != "False" {
			t.Errorf("%s: the numbers stay what they were: %+v", name, st)
		}
		old.Status = st
		if again := report(s, p, reconciler.Outcome{}); len(again.Events) > 0 {
			t.Errorf("%s: told twice: %v", name, again.Events)
		}
		old.Status.Conditions = nil
		if fresh := report(s, p, reconciler.Outcome{}); len(fresh.Events) > 0 {
			t.Errorf("%s: a Cluster that starts is warned of: %v", name, fresh.Events)
		}
	}
}
