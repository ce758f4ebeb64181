package condition

import (
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

func TestLingering(t *testing.T) { // MS-20, DP-12
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	going := func(name string, age time.Duration, stage string) AggregateMember {
		at := metav1.NewTime(now.Add(-age))
		m := AggregateMember{Kind: "Machine", Name: name, Deleted: &at}
		if stage != "" {
			m.Conditions = Set{{Type: clusterv1.DeletingCondition, Status: metav1.ConditionTrue, Reason: stage, Message: "x"}}
		}
		return m
	}
	for name, tc := range map[string]struct {
		reason  string
		members []AggregateMember
		want    string
	}{
		"nobody":      {"", nil, ""},
		"stays":       {"", []AggregateMember{{Kind: "Machine", Name: "a"}}, ""},
		"just begun":  {"most deletions are over soon", []AggregateMember{going("a", 14*time.Minute, "DrainingNode")}, ""},
		"long":        {"", []AggregateMember{going("a", 15*time.Minute, "DrainingNode")}, "Machine a in deletion since more than 15m, stage: DrainingNode"},
		"nobody says": {"its controller is down", []AggregateMember{going("a", time.Hour, "")}, "Machine a in deletion since more than 15m"},
		"several stages": {"sorted, each once",
			[]AggregateMember{going("c", time.Hour, "WaitingForPreDrainHook"), going("b", time.Hour, "DrainingNode"), going("a", time.Hour, "DrainingNode")},
			"Machines a, b, c in deletion since more than 15m, stage: DrainingNode, WaitingForPreDrainHook"},
	} {
		if got := Lingering(tc.members, now); got != tc.want {
			t.Errorf("%s: %s: got %q, want %q", name, tc.reason, got, tc.want)
		}
		slices.Reverse(tc.members)
		if got := Lingering(tc.members, now.Add(time.Hour)); tc.want != "" && got != tc.want {
			t.Errorf("%s: the message changes with time or order: %q", name, got)
		}
	}
}
