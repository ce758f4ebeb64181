package admission

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

func TestMachineHealthCheck(t *testing.T) {
	valid := func(change func(*clusterv1.MachineHealthCheckSpec)) *clusterv1.MachineHealthCheck {
		c := &clusterv1.MachineHealthCheck{}
		c.Spec.ClusterName = "c"
		c.Spec.Selector.MatchLabels = map[string]string{"a": "b"}
		change(&c.Spec)
		return c
	}
	most := func(text string) func(*clusterv1.MachineHealthCheckSpec) {
		return func(s *clusterv1.MachineHealthCheckSpec) {
			s.Remediation.TriggerIf.UnhealthyLessThanOrEqualTo = new(intstr.Parse(text))
		}
	}
	inRange := func(text string) func(*clusterv1.MachineHealthCheckSpec) {
		return func(s *clusterv1.MachineHealthCheckSpec) { s.Remediation.TriggerIf.UnhealthyInRange = text }
	}
	timeout := func(n int32) func(*clusterv1.MachineHealthCheckSpec) {
		return func(s *clusterv1.MachineHealthCheckSpec) { s.Checks.NodeStartupTimeoutSeconds = &n }
	}
	const limits = "spec.remediation.triggerIf."
	for name, tc := range map[string]struct {
		reason string
		change func(*clusterv1.MachineHealthCheckSpec)
		old    *clusterv1.MachineHealthCheck
		want   []string
	}{
		"valid":           {"nothing is wrong", func(*clusterv1.MachineHealthCheckSpec) {}, nil, nil},
		"everything":      {"an empty selector would select all Machines of the cluster", func(s *clusterv1.MachineHealthCheckSpec) { s.Selector = metav1.LabelSelector{} }, nil, []string{"spec.selector"}},
		"broken selector": {"nothing matches it", func(s *clusterv1.MachineHealthCheckSpec) { s.Selector.MatchLabels["a"] = "b c" }, nil, []string{"spec.selector"}},
		"another cluster": {"nothing of it would be looked at", func(s *clusterv1.MachineHealthCheckSpec) {
			s.Selector.MatchLabels[clusterv1.ClusterNameLabel] = "other"
		}, nil, []string{"spec.selector.matchLabels[cluster.x-k8s.io/cluster-name]"}},
		"its own cluster": {"says the same twice", func(s *clusterv1.MachineHealthCheckSpec) { s.Selector.MatchLabels[clusterv1.ClusterNameLabel] = "c" }, nil, nil},
		"off":             {"0 turns the startup check off", timeout(0), nil, nil},
		"short":           {"no Node starts in 29 s", timeout(29), nil, []string{"spec.checks.nodeStartupTimeoutSeconds"}},
		"long enough":     {"30 s is the least", timeout(30), nil, nil},
		"number":          {"HC-05", most("2"), nil, nil},
		"percentage":      {"HC-05", most("40%"), nil, nil},
		"word":            {"HC-05", most("some"), nil, []string{limits + "unhealthyLessThanOrEqualTo"}},
		"negative":        {"HC-05", most("-1"), nil, []string{limits + "unhealthyLessThanOrEqualTo"}},
		"range":           {"HC-05", inRange("[1-5]"), nil, nil},
		"backwards":       {"HC-05", inRange("[5-1]"), nil, []string{limits + "unhealthyInRange"}},
		"huge":            {"HC-05", inRange("[1-99999999999999999999]"), nil, []string{limits + "unhealthyInRange"}},
		"other cluster": {"a health check stays with its cluster (HC-12)", func(s *clusterv1.MachineHealthCheckSpec) { s.ClusterName = "d" },
			valid(func(*clusterv1.MachineHealthCheckSpec) {}), []string{"spec.clusterName"}},
	} {
		r := Request{New: valid(tc.change)}
		if tc.old != nil {
			r.Old = tc.old
		}
		if diff := cmp.Diff(tc.want, problems(Validate(r))); diff != "" {
			t.Errorf("%s: %s (-want +got):\n%s", name, tc.reason, diff)
		}
	}
	out, changed := Default(Request{New: valid(func(*clusterv1.MachineHealthCheckSpec) {})})
	check := out.(*clusterv1.MachineHealthCheck)
	if !changed || check.Labels[clusterv1.ClusterNameLabel] != "c" || *check.Spec.Checks.NodeStartupTimeoutSeconds != 600 { // HC-01, HC-12
		t.Errorf("defaults: %+v", check)
	}
	if _, again := Default(Request{New: out}); again {
		t.Error("defaults are set once")
	}
}
