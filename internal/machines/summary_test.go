package machines_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/slipwayhq/slipway/internal/condition"
	"github.com/slipwayhq/slipway/internal/machines"
)

var summaryNow = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// summaryMachine has conditions such as "Ready=False:a message".
func summaryMachine(name, version string, age time.Duration, conditions ...string) *clusterv1.Machine {
	m := &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Name: name, CreationTimestamp: metav1.NewTime(summaryNow.Add(-age))}}
	m.Spec.Version = version
	for _, text := range conditions {
		text, message, _ := strings.Cut(text, ":")
		conditionType, status, _ := strings.Cut(text, "=")
		m.Status.Conditions = append(m.Status.Conditions,
			metav1.Condition{Type: conditionType, Status: metav1.ConditionStatus(status), Reason: "Said", Message: message})
	}
	return m
}

func deleted(m *clusterv1.Machine, ago time.Duration) *clusterv1.Machine {
	m.DeletionTimestamp = new(metav1.NewTime(summaryNow.Add(-ago)))
	return m
}

func TestCounts(t *testing.T) { // MS-19, DP-14
	ms := machines.List{
		summaryMachine("a", "v1.36.3", time.Hour, "Ready=True", "Available=True", "UpToDate=True"),
		summaryMachine("b", "v1.36.3", time.Hour, "Ready=True", "Available=False", "UpToDate=Unknown"),
		deleted(summaryMachine("c", "v1.35.0", time.Hour), time.Minute),
	}
	if got, want := ms.Count(), (machines.ReplicaCounts{Replicas: 3, Ready: 2, Available: 1, UpToDate: 1}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	want := []clusterv1.StatusVersion{{Version: "v1.35.0", Replicas: 1}, {Version: "v1.36.3", Replicas: 2}}
	if diff := cmp.Diff(want, ms.Versions()); diff != "" {
		t.Errorf("versions (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"a", "b", "c"}, ms.Names()); diff != "" {
		t.Errorf("names (-want +got):\n%s", diff)
	}
}

func TestVerdicts(t *testing.T) { // MS-20, DP-12
	hour, second := time.Hour, time.Second
	for name, tc := range map[string]struct {
		reason string
		got    condition.Result
		want   string
	}{
		"ready, none":      {"", machines.List{}.Ready(), "True NoReplicas"},
		"ready":            {"", machines.List{summaryMachine("a", "", hour, "Ready=True")}.Ready(), "True Ready"},
		"not ready":        {"", machines.List{summaryMachine("a", "", hour, "Ready=True"), summaryMachine("b", "", hour, "Ready=False:x")}.Ready(), "False NotReady * Machine b: x"},
		"ready, not known": {"", machines.List{summaryMachine("a", "", hour)}.Ready(), "Unknown ReadyUnknown * Machine a: Condition Ready not yet reported"},
		"up to date, new":  {"it gets 10 s", machines.List{summaryMachine("a", "", second)}.UpToDate(summaryNow), "True NoReplicas"},
		"up to date, one is new": {"the others count", machines.List{summaryMachine("a", "", second), summaryMachine("b", "", hour, "UpToDate=True")}.UpToDate(summaryNow),
			"True UpToDate"},
		"up to date, not known": {"", machines.List{summaryMachine("a", "", hour)}.UpToDate(summaryNow), "Unknown UpToDateUnknown * Machine a: Condition UpToDate not yet reported"},
		"outdated":              {"", machines.List{summaryMachine("a", "", second, "UpToDate=False:old")}.UpToDate(summaryNow), "False NotUpToDate * Machine a: old"},
		"as many as desired":    {"", machines.List{summaryMachine("a", "", hour)}.ScalingDown(1, summaryNow), "False NotScalingDown"},
		"too many":              {"", machines.List{summaryMachine("a", "", hour), summaryMachine("b", "", hour)}.ScalingDown(1, summaryNow), "True ScalingDown Scaling down from 2 to 1 replicas"},
		"too many, slowly": {"the stage of the deletion", machines.List{deleted(summaryMachine("a", "", hour, "Deleting=True"), hour)}.ScalingDown(0, summaryNow),
			"True ScalingDown Scaling down from 1 to 0 replicas\n* Machine a in deletion since more than 15m, stage: Said"},
		"not remediating": {"a failed check alone asks for nothing", machines.List{summaryMachine("a", "", hour, "HealthCheckSucceeded=False")}.Remediating(), "False NotRemediating"},
		"remediating": {"", machines.List{summaryMachine("a", "", hour, "HealthCheckSucceeded=False", "OwnerRemediated=False:it is next")}.Remediating(),
			"True Remediating * Machine a: it is next"},
	} {
		if got := strings.TrimSpace(string(tc.got.Status) + " " + tc.got.Reason + " " + tc.got.Message); got != tc.want {
			t.Errorf("%s: got %q, want %q: %s", name, got, tc.want, tc.reason)
		}
	}
}
