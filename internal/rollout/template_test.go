package rollout_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/intstr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/slipwayhq/slipway/internal/rollout"
)

func ref(kind, name string) clusterv1.ContractVersionedObjectReference {
	return clusterv1.ContractVersionedObjectReference{APIGroup: "example.org", Kind: kind, Name: name}
}

func template(changes ...func(*clusterv1.MachineTemplateSpec)) clusterv1.MachineTemplateSpec {
	t := clusterv1.MachineTemplateSpec{Spec: clusterv1.MachineSpec{
		ClusterName: "c", Version: "v1.36.3", Bootstrap: clusterv1.Bootstrap{ConfigRef: ref("ConfigTemplate", "b")},
		InfrastructureRef: ref("HostTemplate", "i"),
	}}
	for _, change := range changes {
		change(&t)
	}
	return t
}

func TestDifferences(t *testing.T) { // DP-02, DP-03
	type change = func(*clusterv1.MachineTemplateSpec)
	for name, tc := range map[string]struct {
		reason string
		change change
		want   []string
	}{
		"none": {reason: "the same template", change: func(*clusterv1.MachineTemplateSpec) {}},
		"in place": {
			reason: "what an existing Machine takes over needs no new one",
			change: func(t *clusterv1.MachineTemplateSpec) {
				t.Labels, t.Annotations = map[string]string{"a": "1"}, map[string]string{"a": "1"}
				t.Spec.MinReadySeconds = new(int32(7))
				t.Spec.ReadinessGates = []clusterv1.MachineReadinessGate{{ConditionType: "G"}}
				t.Spec.Deletion.NodeDrainTimeoutSeconds = new(int32(7))
				t.Spec.Taints = []clusterv1.MachineTaint{{Key: "k"}}
			},
		},
		"version": {
			reason: "a version", change: func(t *clusterv1.MachineTemplateSpec) { t.Spec.Version = "v1.36.4" },
			want: []string{"Version v1.36.3, v1.36.4 required"},
		},
		"failure domain": {
			reason: "a place", change: func(t *clusterv1.MachineTemplateSpec) { t.Spec.FailureDomain = "z" },
			want: []string{"Failure domain none, z required"},
		},
		"templates": {
			reason: "both references, always in the same order",
			change: func(t *clusterv1.MachineTemplateSpec) {
				t.Spec.InfrastructureRef, t.Spec.Bootstrap.ConfigRef = ref("Other", "i"), ref("ConfigTemplate", "b2")
			},
			want: []string{"ConfigTemplate b, b2 required", "Infrastructure HostTemplate.example.org i, Other.example.org i required"},
		},
		"secret": {
			reason: "data that is given", change: func(t *clusterv1.MachineTemplateSpec) {
				t.Spec.Bootstrap = clusterv1.Bootstrap{DataSecretName: new("s")}
			},
			want: []string{"Bootstrap config ConfigTemplate.example.org b, none required", "Bootstrap data Secret none, s required"},
		},
		"secret of a config": {
			reason: "data that a config made", change: func(t *clusterv1.MachineTemplateSpec) { t.Spec.Bootstrap.DataSecretName = new("s") },
		},
	} {
		t.Run(name, func(t *testing.T) {
			have, want := template(), template(tc.change)
			if diff := cmp.Diff(tc.want, rollout.Differences(have, want)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
			if same := rollout.Hash(have) == rollout.Hash(want); same != (len(tc.want) == 0) {
				t.Errorf("%s: the hash is the same: %t", tc.reason, same)
			}
		})
	}
}

func TestSuffix(t *testing.T) { // DP-03
	seen := map[string]bool{}
	for _, uid := range []string{"u1", "u2"} {
		for revision := range 200 {
			s := rollout.Suffix(uid, strings.Repeat("i", revision))
			if s != rollout.Suffix(uid, strings.Repeat("i", revision)) || len(s) != 5 {
				t.Fatalf("%q is not stable", s)
			}
			seen[s] = true
		}
	}
	if len(seen) < 399 {
		t.Errorf("%d of 400 suffixes differ", len(seen))
	}
	if rollout.Suffix("ab", "c") == rollout.Suffix("a", "bc") {
		t.Error("the parts of a seed run into each other")
	}
}

func TestExpired(t *testing.T) { // DP-10
	at := func(minute int) time.Time { return time.Date(2026, 1, 1, 0, minute, 0, 0, time.UTC) }
	for name, tc := range map[string]struct {
		after, created, now time.Time
		want                bool
	}{
		"not asked":      {time.Time{}, at(0), at(9), false},
		"to come":        {at(5), at(0), at(4), false},
		"now":            {at(5), at(0), at(5), true},
		"rolled out":     {at(5), at(6), at(9), false},
		"created at it":  {at(5), at(5), at(9), false},
		"long ago asked": {at(5), at(0), at(59), true},
	} {
		if got := rollout.Expired(tc.after, tc.created, tc.now); got != tc.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

func TestLimits(t *testing.T) { // DP-06, DP-15
	n := func(v int) *intstr.IntOrString { return new(intstr.FromInt(v)) }
	s := func(v string) *intstr.IntOrString { return new(intstr.FromString(v)) }
	rolling := func(surge, unavailable *intstr.IntOrString) clusterv1.MachineDeploymentRolloutStrategy {
		return clusterv1.MachineDeploymentRolloutStrategy{
			RollingUpdate: clusterv1.MachineDeploymentRolloutStrategyRollingUpdate{MaxSurge: surge, MaxUnavailable: unavailable},
		}
	}
	for name, tc := range map[string]struct {
		strategy clusterv1.MachineDeploymentRolloutStrategy
		replicas int32
		want     rollout.Limits
		err      string
	}{
		"unset":             {rolling(nil, nil), 5, rollout.Limits{MaxSurge: 1}, ""},
		"numbers":           {rolling(n(2), n(3)), 5, rollout.Limits{MaxSurge: 2, MaxUnavailable: 3}, ""},
		"percents":          {rolling(s("25%"), s("25%")), 5, rollout.Limits{MaxSurge: 2, MaxUnavailable: 1}, ""},
		"no way":            {rolling(n(0), n(0)), 5, rollout.Limits{MaxUnavailable: 1}, ""},
		"rounded to none":   {rolling(n(0), s("10%")), 5, rollout.Limits{MaxUnavailable: 1}, ""},
		"more than all":     {rolling(n(1), n(9)), 5, rollout.Limits{MaxSurge: 1, MaxUnavailable: 5}, ""},
		"on delete":         {clusterv1.MachineDeploymentRolloutStrategy{Type: clusterv1.OnDeleteMachineDeploymentStrategyType}, 5, rollout.Limits{OnDelete: true}, ""},
		"bad surge":         {rolling(s("many"), nil), 5, rollout.Limits{}, "maxSurge"},
		"bad unavailable":   {rolling(nil, s("1")), 5, rollout.Limits{}, "maxUnavailable"},
		"negative":          {rolling(n(-1), nil), 5, rollout.Limits{}, "maxSurge"},
		"percents of noone": {rolling(s("25%"), s("25%")), 0, rollout.Limits{}, ""},
	} {
		got, err := rollout.Resolve(tc.strategy, tc.replicas)
		if (err == nil) != (tc.err == "") || err != nil && !strings.Contains(err.Error(), tc.err) {
			t.Errorf("%s: error %v", name, err)
		}
		if diff := cmp.Diff(tc.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	for name, tc := range map[string]struct {
		limit *intstr.IntOrString
		want  int32
	}{"unset": {nil, 5}, "number": {n(2), 2}, "percent": {s("30%"), 2}, "none": {n(0), 0}} {
		if got, err := rollout.MaxInFlight(tc.limit, 5); err != nil || got != tc.want {
			t.Errorf("%s: %d, %v", name, got, err)
		}
	}
}

func TestComplete(t *testing.T) { // DP-20
	done := rollout.MachineSet{Name: "b", Desired: 2, Actual: 2, Available: 2}
	for name, tc := range map[string]struct {
		state rollout.DeploymentState
		want  bool
	}{
		"done":          {rollout.DeploymentState{Replicas: 2, New: &done, Old: []rollout.MachineSet{{Name: "a"}}}, true},
		"nothing new":   {rollout.DeploymentState{Replicas: 2}, false},
		"one is left":   {rollout.DeploymentState{Replicas: 2, New: &done, Old: []rollout.MachineSet{{Name: "a", Actual: 1, Deleting: 1}}}, false},
		"too few":       {rollout.DeploymentState{Replicas: 3, New: &done}, false},
		"not available": {rollout.DeploymentState{Replicas: 2, New: &rollout.MachineSet{Desired: 2, Actual: 2, Available: 1}}, false},
	} {
		if got := rollout.Complete(tc.state); got != tc.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

func TestLeavingSetsCount(t *testing.T) { // DP-06, DP-09
	left := rollout.MachineSet{Name: "gone", Desired: 2, Actual: 2, Deleting: 2, Leaving: true}
	old := rollout.MachineSet{Name: "a", Revision: 1, Desired: 1, Actual: 1, Available: 1}
	for name, tc := range map[string]struct {
		reason string
		limits rollout.Limits
		want   []string
	}{
		"rolling":   {"no more than four while the two are still there", rollout.Limits{MaxSurge: 1}, []string{"scale b from 0 to 1: it replaces the old MachineSets"}},
		"on delete": {"no more than three", rollout.Limits{OnDelete: true}, nil},
	} {
		var got []string
		for _, c := range rollout.Plan(rollout.DeploymentState{Replicas: 3, Limits: tc.limits, New: &rollout.MachineSet{Name: "b", Revision: 2}, Old: []rollout.MachineSet{left, old}}) {
			got = append(got, c.String())
		}
		if diff := cmp.Diff(tc.want, got); diff != "" {
			t.Errorf("%s: %s (-want +got):\n%s", name, tc.reason, diff)
		}
	}
}

func TestLeavingSetsKeepNothing(t *testing.T) { // DP-06
	// The MachineSet was deleted in this moment: its Machines are available and do not know of it yet.
	left := rollout.MachineSet{Name: "gone", Desired: 2, Actual: 2, Available: 2, Leaving: true}
	old := rollout.MachineSet{Name: "a", Revision: 1, Desired: 2, Actual: 2, Available: 2}
	s := rollout.DeploymentState{
		Replicas: 4, Limits: rollout.Limits{MaxUnavailable: 2}, Old: []rollout.MachineSet{left, old},
		New: &rollout.MachineSet{Name: "b", Revision: 2},
	}
	for _, c := range rollout.Plan(s) {
		if c.Set == "a" {
			t.Errorf("%s: two are going already, and two may be missing", c)
		}
	}
	s.Old[0].Leaving = false // the same with a MachineSet that stays
	var got []string
	for _, c := range rollout.Plan(s) {
		got = append(got, c.Set)
	}
	if diff := cmp.Diff([]string{"gone"}, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
