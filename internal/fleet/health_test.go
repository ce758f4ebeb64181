package fleet

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/slipwayhq/slipway/internal/rootcause"
)

func TestHealth(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		facts  healthFacts
		want   Health
	}{
		"nothing":              {"no facts", healthFacts{}, healthy},
		"paused":               {"paused on purpose", healthFacts{paused: true, troubled: true, needsUser: true}, Paused},
		"paused, deleting":     {"the deletion waits for ever", healthFacts{paused: true, deleting: true}, Problem},
		"user":                 {"a user has to act, also during a change", healthFacts{troubled: true, needsUser: true, progressing: true}, Problem},
		"trouble":              {"something is wrong and nothing changes", healthFacts{troubled: true}, Problem},
		"trouble in a change":  {"not yet ready is normal in a rollout", healthFacts{troubled: true, progressing: true}, changing},
		"stalled rollout":      {"the cause does not go away", healthFacts{troubled: true, progressing: true, stalled: true}, Problem},
		"deleting":             {"a deletion proceeds", healthFacts{deleting: true, troubled: true}, changing},
		"stalled deletion":     {"a deletion does not proceed", healthFacts{deleting: true, troubled: true, stalled: true}, Problem},
		"progress, no trouble": {"a rollout", healthFacts{progressing: true}, changing},
	} {
		if got := healthOf(tc.facts); got != tc.want {
			t.Errorf("%s (%s): got %s, want %s", name, tc.reason, got, tc.want)
		}
	}
}

func TestShortReason(t *testing.T) {
	own := rootcause.Ref{Kind: "Cluster", Name: "a"}
	other := rootcause.Ref{Kind: "Machine", Name: "m"}
	for name, tc := range map[string]struct {
		link rootcause.Link
		want string
	}{
		"own message":  {rootcause.Link{Object: own, Message: "It is paused"}, "It is paused"},
		"other object": {rootcause.Link{Object: other, Message: "* It does not boot\n* and more"}, "Machine m: It does not boot"},
		"heading":      {rootcause.Link{Object: own, Message: "Problems:\n* one\n* two"}, "Problems: one"},
		"blocked drain": {rootcause.Link{Object: other, Message: "Draining Node n since 2026-11-28T17:50:00Z\n* Terminating Pods: shop/a\n* Pods that cannot be evicted, a PodDisruptionBudget does not allow it now: web needs 2: shop/b"},
			"Machine m: Pods that cannot be evicted, a PodDisruptionBudget does not allow it now: web needs 2: shop/b"},
		"drain":      {rootcause.Link{Object: own, Message: "Draining Node n since 2026-11-28T17:50:00Z\n* Terminating Pods: shop/a"}, "Draining Node n since 2026-11-28T17:50:00Z"},
		"no message": {rootcause.Link{Object: own, Reason: "NotReady", Type: "Ready"}, "NotReady"},
		"type only":  {rootcause.Link{Object: own, Type: "Ready"}, "Ready"},
		"long":       {rootcause.Link{Object: own, Message: strings.Repeat("é", 200)}, strings.Repeat("é", 80) + " …"},
	} {
		if got := shortReason(own, tc.link); got != tc.want {
			t.Errorf("%s: got %q, want %q", name, got, tc.want)
		}
	}
}

func TestStalled(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for ago, want := range map[time.Duration]bool{0: false, 14 * time.Minute: false, 15 * time.Minute: true, 100 * time.Hour: true} {
		if isStalled(now.Add(-ago), now) != want {
			t.Errorf("%s: want %v", ago, want)
		}
	}
	if isStalled(time.Time{}, now) {
		t.Error("an unknown time is not long ago")
	}
}

// The remedy of a change that has stalled is not that no action is needed.
func TestRemedyOfStalledChange(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for ago, want := range map[time.Duration]string{time.Minute: "no action is needed", time.Hour: "slipway explain machine/m -n team"} {
		u := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": clusterv1.GroupVersion.String(), "kind": "Machine", "metadata": map[string]any{"namespace": "team", "name": "m"},
			"status": map[string]any{"conditions": []any{map[string]any{
				"type": clusterv1.MachineUpToDateCondition, "status": "False", "reason": clusterv1.NotUpToDateReason, "message": "* Version v1.36.0 required",
				"lastTransitionTime": now.Add(-ago).Format(time.RFC3339),
			}}},
		}}
		g := &rootcause.Memory{}
		g.Add(u)
		c, facts := explain(g, rootcause.RefOf(u), now)
		if facts.needsUser || !strings.Contains(c.Remedy+" ("+c.Command+")", want) {
			t.Errorf("after %s: %q, %q", ago, c.Remedy, c.Command)
		}
	}
}

// The remedy of a problem that may take any time describes what ends it.
func TestRemedyOfEndlessProblem(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	g := &rootcause.Memory{}
	u := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": clusterv1.GroupVersion.String(), "kind": "Cluster", "metadata": map[string]any{"namespace": "team", "name": "c"},
		"status": map[string]any{"conditions": []any{map[string]any{
			"type": clusterv1.ClusterTopologyReconciledCondition, "status": "False", "reason": "LifecycleHookBlocking", "message": "Hook BeforeClusterUpgrade has blocked the upgrade",
			"lastTransitionTime": now.Add(-time.Hour).Format(time.RFC3339),
		}}},
	}}
	g.Add(u)
	if c, facts := explain(g, rootcause.RefOf(u), now); facts.needsUser || !strings.Contains(c.Remedy, "The extension is called again") {
		t.Errorf("%q, %+v", c.Remedy, facts)
	}
}

func TestIncompleteReplicas(t *testing.T) {
	number := func(n int32) *int32 { return &n }
	for name, tc := range map[string]struct {
		replicas *Replicas
		want     bool
	}{
		"no desired number":  {newReplicas(nil, nil, nil, nil, nil), true},
		"unknown":            {newReplicas(number(3), nil, nil, nil, nil), true},
		"without up to date": {newReplicas(number(3), number(3), number(3), number(3), nil), true},
		"outdated":           {newReplicas(number(3), number(3), number(3), number(3), number(2)), false},
		"surplus":            {newReplicas(number(3), number(4), number(3), number(3), number(3)), false},
	} {
		if got := tc.replicas.isComplete(); got != tc.want {
			t.Errorf("%s: got %t", name, got)
		}
	}
}

func TestIsUpgrading(t *testing.T) {
	for name, tc := range map[string]struct {
		cluster Cluster
		want    bool
		text    string
	}{
		"build suffix":        {Cluster{Version: "v1.36.0", RunningVersions: []string{"v1.36.0+k3s1"}}, false, "v1.36.0"},
		"independent workers": {Cluster{Version: "v1.36.0", RunningVersions: []string{"v1.35.0", "v1.36.0"}, independent: []string{"v1.35.0"}}, false, "v1.36.0"},
		"control plane":       {Cluster{Version: "v1.36.0", RunningVersions: []string{"v1.34.0", "v1.35.0"}, independent: []string{"v1.34.0"}}, true, "v1.35.0 → v1.36.0"},
	} {
		if got := tc.cluster.IsUpgrading(); got != tc.want || tc.cluster.VersionText() != tc.text {
			t.Errorf("%s: got %t, %s", name, got, tc.cluster.VersionText())
		}
	}
}

func TestPoolNodes(t *testing.T) {
	p := &clusterv1.MachinePool{}
	p.Spec.ClusterName = "c"
	p.Status.NodeRefs = []corev1.ObjectReference{{Name: "a"}, {Name: "b"}, {}}
	if got := NewPoolNodes(p, map[string]bool{"a": true}); len(got) != 1 || got[0].Name != "b" || got[0].Cluster != "c" {
		t.Errorf("%+v", got)
	}
}
