package machinehealthcheck

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/slipwayhq/slipway/internal/condition"
	"github.com/slipwayhq/slipway/internal/loop"
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
		s      Snapshot
		want   want
	}{
		"all healthy": {"nothing stands against remediation", snapshot(check(), healthy("a"), healthy("b")),
			want{2, 2, 2, []string{"a", "b"}, "True", "RemediationAllowed", "", "True", "", nil}},
		"one sick": {"one more may become", snapshot(check(), healthy("a"), sick("b")),
			want{2, 1, 1, []string{"a", "b"}, "True", "RemediationAllowed", "", "True", "", nil}},
		"starting": {"not healthy yet", snapshot(check(), starting("a")),
			want{1, 0, 0, []string{"a"}, "True", "RemediationAllowed", "", "True", "", nil}},
		"deleting": {"not healthy any more", snapshot(check(), Target{Machine: machine("a", deleting), Node: node("a", "True", 0), NodeAsked: true}),
			want{1, 0, 0, []string{"a"}, "True", "RemediationAllowed", "", "True", "", nil}},
		"too many": {"remediation ends, and an event tells", snapshot(check(limited(lessOrEqual(intOrString("1")))), sick("a"), sick("b")),
			want{2, 0, 0, []string{"a", "b"}, "False", "TooManyUnhealthy", "2 of 2 Machines are not started or not healthy, which unhealthyLessThanOrEqualTo 1 does not allow",
				"False", "Warning", []string{"RemediationRestricted"}}},
		"still too many": {"told once", snapshot(check(limited(inRange("[2-3]")), func(c *clusterv1.MachineHealthCheck) {
			c.Status.Conditions = append(c.Status.Conditions, condition.Set{{Type: "RemediationAllowed", Status: "False", Reason: "TooManyUnhealthy"}}...)
		}), sick("a")),
			want{1, 0, 0, []string{"a"}, "False", "TooManyUnhealthy", "1 of 1 Machines are not started or not healthy, which unhealthyInRange [2-3] does not allow", "False", "Warning", nil}},
		"unreadable": {"a limit that cannot be read", snapshot(check(limited(inRange("[3-2]"))), healthy("a")),
			want{1, 1, 0, []string{"a"}, "False", "InternalError", `spec.remediation.triggerIf.unhealthyInRange: "[3-2]" is not a range; write it like [1-5]`,
				"False", "Warning", []string{"RemediationRestricted"}}},
		"none": {"nothing selected", snapshot(check()), want{0, 0, 0, nil, "True", "RemediationAllowed", "", "True", "", nil}},
	} {
		t.Run(name, func(t *testing.T) {
			r := Report(tc.s, Decide(tc.s), loop.Outcome{})
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
		c.Status = clusterv1.MachineHealthCheckStatus{ExpectedMachines: ptr(int32(3)), CurrentHealthy: ptr(int32(2)), Targets: []string{"a", "b", "c"},
			Conditions: condition.Set{{Type: "RemediationAllowed", Status: "True", Reason: "RemediationAllowed"}, {Type: "Paused", Status: "False", Reason: "NotPaused"}}}
	})
	s := snapshot(old, sick("a"))
	s.Disconnected = "away"
	want := old.Status.DeepCopy()
	want.Conditions = want.Conditions[:1] // the driver adds Paused
	if diff := cmp.Diff(want, Report(s, Decide(s), loop.Outcome{}).Status); diff != "" {
		t.Errorf("what is not known stays as it was (-want +got):\n%s", diff)
	}
}
