package machinehealthcheck

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/slipwayhq/slipway/internal/reconciler"
	"github.com/slipwayhq/slipway/internal/workload"
)

func TestWhatWakes(t *testing.T) { // HC-10
	base := machine("m", says(health, "True", "HealthCheckSucceeded", ""), says("Ready", "False", "A", "x"))
	for name, tc := range map[string]struct {
		reason string
		change func(*clusterv1.Machine)
		want   bool
	}{
		"label":            {"it may be selected now", func(m *clusterv1.Machine) { m.Labels["x"] = "y" }, true},
		"annotation":       {"remediate-machine, skip-remediation", annotated(clusterv1.RemediateMachineAnnotation), true},
		"node":             {"its Node appeared", func(m *clusterv1.Machine) { m.Status.NodeRef.Name = "other" }, true},
		"deletion":         {"it does not count any more", deleting, true},
		"condition":        {"a check may look at it", func(m *clusterv1.Machine) { m.Status.Conditions[1].Status = "True" }, true},
		"taken over":       {"somebody else sets our condition", func(m *clusterv1.Machine) { m.Status.Conditions[0].Reason = "Other" }, true},
		"message":          {"messages are for people", func(m *clusterv1.Machine) { m.Status.Conditions[1].Message = "y" }, false},
		"phase":            {"nothing looks at it", func(m *clusterv1.Machine) { m.Status.Phase = "Running" }, false},
		"resource version": {"nothing happened", func(m *clusterv1.Machine) { m.ResourceVersion = "2" }, false},
	} {
		after := base.DeepCopy()
		tc.change(after)
		if got := machineChanged(base, after); got != tc.want {
			t.Errorf("%s: %s: got %t", name, tc.reason, got)
		}
	}
	beat := node("n", "True", time.Hour)
	beat.Status.Conditions[0].LastHeartbeatTime = metav1.NewTime(now)
	if nodeMatters(node("n", "True", time.Hour), beat) {
		t.Error("a heartbeat is no news")
	}
	if !nodeMatters(node("n", "True", time.Hour), node("n", "Unknown", 0)) {
		t.Error("a Node that does not report any more is")
	}
}

func TestWhoIsWoken(t *testing.T) { // HC-10
	var asked workload.WatchRequest
	ctl := &controller{client: world().Build(), workloads: fakeWorkloads{asked: &asked}}
	if err := ctl.watchNodes(t.Context(), client.ObjectKey{Namespace: "ns", Name: "c"}); err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		got  []reconcile.Request
		want int
	}{
		"Machine":                    {ctl.ofMachine(t.Context(), machine("m")), 1},
		"Machine of another cluster": {ctl.ofMachine(t.Context(), machine("m", func(m *clusterv1.Machine) { m.Spec.ClusterName = "d" })), 0},
		"Machine not selected":       {ctl.ofMachine(t.Context(), machine("m", func(m *clusterv1.Machine) { m.Labels = nil })), 0},
		"Cluster":                    {ctl.ofClusterObject(t.Context(), cluster()), 1},
		"Node":                       {asked.Map(t.Context(), &corev1.Node{}), 1},
		"request":                    {ctl.ofRequest(t.Context(), request("sick").Unstructured), 1},
		"request for nothing":        {ctl.ofRequest(t.Context(), request("gone").Unstructured), 0},
	} {
		if len(tc.got) != tc.want {
			t.Errorf("%s wakes %v, want %d", name, tc.got, tc.want)
		}
	}
}

func TestPace(t *testing.T) { // HC-10, FG-03
	if got := debounced(reconciler.Setup{ReconcileInterval: time.Millisecond}).ReconcileInterval; got != 5*time.Second {
		t.Errorf("want passes over a health check 5 s apart, got %s", got)
	}
	if got := debounced(reconciler.Setup{}).ReconcileInterval; got != 0 {
		t.Errorf("without the gate every event makes a pass, got one in %s", got)
	}
}

func TestInfrastructureWakes(t *testing.T) { // HC-03, HC-10
	matters := clusterMatters()
	down := func(c *clusterv1.Cluster) { c.Status.Conditions[1].Status = "False" }
	reworded := func(c *clusterv1.Cluster) { c.Status.Conditions[1].Message = "as before" }
	for name, tc := range map[string]struct {
		before, after *clusterv1.Cluster
		want          bool
	}{
		"goes down":      {cluster(), cluster(down), true},
		"comes back":     {cluster(down), cluster(), true},
		"is the same":    {cluster(), cluster(reworded), false},
		"is provisioned": {cluster(func(c *clusterv1.Cluster) { c.Status.Initialization.InfrastructureProvisioned = nil }), cluster(), true},
	} {
		if got := matters.Update(event.UpdateEvent{ObjectOld: tc.before, ObjectNew: tc.after}); got != tc.want {
			t.Errorf("%s: got %t", name, got)
		}
	}
	if !matters.Create(event.CreateEvent{Object: cluster()}) {
		t.Error("a new Cluster wakes")
	}
}
