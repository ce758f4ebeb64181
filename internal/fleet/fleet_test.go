package fleet_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/yaml"

	"github.com/slipwayhq/slipway/internal/fleet"
	"github.com/slipwayhq/slipway/internal/rootcause"
	"github.com/slipwayhq/slipway/test/mirrortest"
)

// change replaces text in the YAML of a healthy cluster. Each text must be there.
func change(t *testing.T, text string, pairs ...string) string {
	t.Helper()
	for i := 0; i < len(pairs); i += 2 {
		if !strings.Contains(text, pairs[i]) {
			t.Fatalf("%q is not in the text", pairs[i])
		}
		text = strings.Replace(text, pairs[i], pairs[i+1], 1)
	}
	return text
}

func graphOf(texts ...string) *rootcause.Memory {
	g := &rootcause.Memory{}
	for _, text := range texts {
		for _, u := range mirrortest.Objects(text) {
			g.Add(u)
		}
	}
	return g
}

// machinesOf returns the Machines of a text.
func machinesOf(t *testing.T, text string) (out []*clusterv1.Machine) {
	t.Helper()
	for _, u := range mirrortest.Objects(text) {
		if u.GetKind() != "Machine" {
			continue
		}
		m, ok := rootcause.Decode[clusterv1.Machine](u)
		if !ok {
			t.Fatalf("%s is not a Machine", u.GetName())
		}
		out = append(out, m)
	}
	return out
}

func rowOf(t *testing.T, g *rootcause.Memory, name string) fleet.Cluster {
	t.Helper()
	b := fleet.NewBoard(g)
	b.Touch(fleet.Key{Namespace: "team", Name: name})
	b.Refresh(mirrortest.Now())
	row, ok := b.Cluster(fleet.Key{Namespace: "team", Name: name})
	if !ok {
		t.Fatalf("cluster %s has no row", name)
	}
	return row
}

func TestClusters(t *testing.T) {
	healthy := mirrortest.Cluster("team", "a")
	for name, tc := range map[string]struct {
		reason  string
		objects []string
		want    string // health, version, reason, needs a user
	}{
		"healthy": {"nothing to report", []string{healthy}, "Healthy|v1.36.0||false"},
		"upgrade": {"the version that runs is shown, not only the desired one",
			[]string{change(t, healthy, "controlPlane: {desiredReplicas: 1, replicas: 1, readyReplicas: 1, availableReplicas: 1, upToDateReplicas: 1, versions: [{version: v1.36.0", "controlPlane: {desiredReplicas: 1, replicas: 1, readyReplicas: 1, availableReplicas: 1, upToDateReplicas: 0, versions: [{version: v1.35.1")},
			"Changing|v1.35.1 → v1.36.0|Upgrading|false"},
		"scaling": {"a counter differs", []string{change(t, healthy, "workers: {desiredReplicas: 1", "workers: {desiredReplicas: 3")}, "Changing|v1.36.0|Replacing Machines|false"},
		"broken": {"the object at the end of the chain is named",
			[]string{healthy, mirrortest.Broken("team", "a", "Container x belongs to another object\nmore")}, "Problem|v1.36.0|LocalMachine a-md-a-1: Container x belongs to another object|true"},
	} {
		row := rowOf(t, graphOf(tc.objects...), "a")
		got := fmt.Sprintf("%s|%s|%s|%v", row.Health, row.VersionText(), row.Reason, row.NeedsUser)
		if got != tc.want {
			t.Errorf("%s (%s): got %s, want %s", name, tc.reason, got, tc.want)
		}
	}
}

// What ends without a user while objects are created or replaced is a change, until it is overdue.
func TestCreationIsChange(t *testing.T) {
	const phase = "  phase: Running\n  nodeRef: {name: a-md-a-1-node}\n"
	healthy := mirrortest.Cluster("team", "a")
	ready := func(conditionType string) string {
		return fmt.Sprintf(`{type: %s, status: "True", reason: %s, message: "", lastTransitionTime: "2026-05-02T13:00:00Z"}`, conditionType, conditionType)
	}
	failed := func(conditionType, status string, ago time.Duration) string {
		return fmt.Sprintf(`{type: %s, status: %q, reason: Waiting, message: "Waiting for the Node of the Machine to exist", lastTransitionTime: %q}`, conditionType, status, mirrortest.Now().Add(-ago).Format(time.RFC3339))
	}
	worker := func(pairs ...string) string {
		docs := strings.Split(healthy, "\n---\n")
		i := slices.IndexFunc(docs, func(d string) bool {
			return strings.Contains(d, "kind: Machine\n") && strings.Contains(d, "name: a-md-a-1,")
		})
		docs[i] = change(t, docs[i], pairs...)
		return strings.Join(docs, "\n---\n")
	}
	created := []string{`creationTimestamp: "2026-05-02T12:00:00Z"`, `creationTimestamp: "2026-05-04T11:59:00Z"`}
	for name, tc := range map[string]struct {
		objects string
		want    fleet.Health
	}{
		"no Node yet":         {worker(phase, "  phase: Provisioned\n", ready("NodeHealthy"), failed("NodeHealthy", "Unknown", 10*time.Second)), "Changing"},
		"no Node for long":    {worker(phase, "  phase: Provisioned\n", ready("NodeHealthy"), failed("NodeHealthy", "Unknown", time.Hour)), fleet.Problem},
		"Node starts":         {worker(append(created, ready("NodeReady"), failed("NodeReady", "False", 10*time.Second))...), "Changing"},
		"Node failed":         {worker(ready("NodeReady"), failed("NodeReady", "False", 10*time.Second)), fleet.Problem},
		"Machine is deleted":  {worker(`creationTimestamp:`, `deletionTimestamp: "2026-05-04T11:59:50Z", creationTimestamp:`), "Changing"},
		"control plane":       {change(t, healthy, "controlPlaneInitialized: true}\n", "}\n", `{type: ControlPlaneInitialized, status: "True"`, `{type: ControlPlaneInitialized, status: "False"`, `reason: Initialized, message: "", lastTransitionTime: "2026-05-02T13:00:00Z"`, `reason: NotInitialized, message: "", lastTransitionTime: "2026-05-04T11:59:50Z"`), "Changing"},
		"new object, no plan": {healthy + "\n---\n" + `{apiVersion: bootstrap.cluster.x-k8s.io/v1beta2, kind: KubeadmConfig, metadata: {namespace: team, name: new, creationTimestamp: "2026-05-04T11:59:57Z", labels: {cluster.x-k8s.io/cluster-name: a}, ownerReferences: [{apiVersion: cluster.x-k8s.io/v1beta2, kind: Machine, name: a-md-a-1, uid: m, controller: true}]}, spec: {}}`, "Changing"},
	} {
		if row := rowOf(t, graphOf(tc.objects), "a"); row.Health != tc.want || row.Reason == "" {
			t.Errorf("%s: got %s, %q, want %s", name, row.Health, row.Reason, tc.want)
		}
	}
}

func TestPausedAndDeleting(t *testing.T) {
	healthy := mirrortest.Cluster("team", "a")
	paused := change(t, healthy, "spec:\n  infra", "spec:\n  paused: true\n  infra")
	if row := rowOf(t, graphOf(paused), "a"); row.Health != "Paused" || !row.Paused {
		t.Errorf("paused: %+v", row)
	}
	deleting := change(t, paused, `generation: 1`, `generation: 1, deletionTimestamp: "2026-05-04T11:59:00Z"`)
	if row := rowOf(t, graphOf(deleting), "a"); row.Health != fleet.Problem {
		t.Errorf("paused and deleting: %s", row.Health)
	}
	deleting = change(t, healthy, `generation: 1`, `generation: 1, deletionTimestamp: "2026-05-04T11:59:00Z"`)
	if row := rowOf(t, graphOf(deleting), "a"); row.Health != "Changing" {
		t.Errorf("deleting: %s, %s", row.Health, row.Reason)
	}
}

func TestBoard(t *testing.T) {
	s := graphOf(mirrortest.Cluster("team", "a"), mirrortest.Cluster("team", "b"))
	b := fleet.NewBoard(s)
	a := fleet.Key{Namespace: "team", Name: "a"}
	b.Touch(a)
	b.Touch(fleet.Key{Namespace: "team", Name: "none"})
	if diff := cmp.Diff([]fleet.Key{a}, b.Refresh(mirrortest.Now())); diff != "" {
		t.Errorf("the first refresh:\n%s", diff)
	}
	b.Touch(a)
	if got := b.Refresh(mirrortest.Now().Add(time.Second)); got != nil {
		t.Errorf("nothing has changed, but %v", got)
	}
	for _, u := range mirrortest.Objects(mirrortest.Broken("team", "a", "it ended")) {
		s.Add(u)
	}
	if got := b.Refresh(mirrortest.Now()); got != nil {
		t.Errorf("a row was computed without a touch: %v", got)
	}
	b.Touch(a)
	if diff := cmp.Diff([]fleet.Key{a}, b.Refresh(mirrortest.Now())); diff != "" {
		t.Errorf("after a change:\n%s", diff)
	}
	s.Remove(rootcause.Ref{Group: clusterv1.GroupVersion.Group, Kind: "Cluster", Namespace: "team", Name: "a"})
	b.Touch(a)
	if diff := cmp.Diff([]fleet.Key{a}, b.Refresh(mirrortest.Now())); diff != "" || len(b.Clusters()) != 0 {
		t.Errorf("after the deletion: %v\n%s", b.Clusters(), diff)
	}
}

func TestVersions(t *testing.T) {
	for name, tc := range map[string]struct {
		desired string
		running []string
		want    string
	}{
		"same":        {"v1.36.0", []string{"v1.36.0"}, "v1.36.0"},
		"upgrade":     {"v1.36.0", []string{"v1.35.1"}, "v1.35.1 → v1.36.0"},
		"half":        {"v1.36.0", []string{"v1.35.1", "v1.36.0"}, "v1.35.1 → v1.36.0"},
		"behind":      {"v1.35.1", []string{"v1.35.1", "v1.36.0"}, "v1.36.0 → v1.35.1"},
		"not running": {"v1.36.0", nil, "v1.36.0"},
		"unknown":     {"", []string{"v1.35.1", "v1.36.0"}, "v1.35.1, v1.36.0"},
	} {
		c := fleet.Cluster{Version: tc.desired, RunningVersions: tc.running}
		if got := c.VersionText(); got != tc.want {
			t.Errorf("%s: %s, want %s", name, got, tc.want)
		}
	}
}

func machineOf(t *testing.T, text string) *clusterv1.Machine {
	t.Helper()
	m := &clusterv1.Machine{}
	if err := yaml.Unmarshal([]byte(text), m); err != nil {
		t.Fatal(err)
	}
	return m
}

func TestMachines(t *testing.T) {
	healthy := mirrortest.Cluster("team", "a")
	row := fleet.NewMachine(graphOf(healthy), machinesOf(t, healthy)[1], mirrortest.Now())
	got := []string{row.Cluster, row.Name, row.Role, row.Node, row.Version, row.Running, row.Ready, row.UpToDate, row.Phase, string(row.Health)}
	if diff := cmp.Diff([]string{"a", "a-md-a-1", "worker", "a-md-a-1-node", "v1.36.0", "v1.36.0", "True", "True", "Running", "Healthy"}, got); diff != "" {
		t.Error(diff)
	}
	broken := mirrortest.Broken("team", "a", "it ended")
	if row := fleet.NewMachine(graphOf(healthy, broken), machinesOf(t, broken)[0], mirrortest.Now()); row.Health != fleet.Problem || row.Reason != "LocalMachine a-md-a-1: it ended" || row.Since == nil {
		t.Errorf("broken: %+v", row)
	}
	starting := machineOf(t, `{metadata: {namespace: team, name: new, creationTimestamp: "2026-05-04T11:59:50Z"}, spec: {clusterName: a}, status: {phase: Provisioning}}`)
	if row := fleet.NewMachine(graphOf(), starting, mirrortest.Now()); row.Health != "Changing" || row.Reason != "Provisioning" {
		t.Errorf("starting: %s, %s", row.Health, row.Reason)
	}
}

func TestNodes(t *testing.T) {
	m := machinesOf(t, mirrortest.Cluster("team", "a"))[0]
	row, ok := fleet.NewNode(m, mirrortest.Now())
	got := []string{row.Name, row.Machine, row.Role, row.Version, row.StatusText(), row.Address, row.Image, row.Runtime, string(row.Health), row.Reason}
	if diff := cmp.Diff([]string{"a-cp-node", "a-cp", "control-plane", "v1.36.0", "Ready", "172.30.0.5", "Debian 12", "containerd://2.1", "Healthy", ""}, got); diff != "" || !ok {
		t.Error(diff)
	}
	for i := range m.Status.Conditions {
		if c := &m.Status.Conditions[i]; c.Type == clusterv1.MachineNodeReadyCondition {
			c.Status, c.Message, c.LastTransitionTime = metav1.ConditionUnknown, "* Node.Ready: Kubelet stopped posting node status.", metav1.NewTime(mirrortest.Now())
		}
	}
	if row, _ := fleet.NewNode(m, mirrortest.Now()); row.Health != fleet.Problem || row.StatusText() != "Unknown" || row.Reason != "Node.Ready: Kubelet stopped posting node status." || row.Since == nil {
		t.Errorf("not ready: %+v", row)
	}
	for i := range m.Status.Conditions {
		if c := &m.Status.Conditions[i]; c.Type == clusterv1.MachineNodeReadyCondition {
			c.Status, c.Message = metav1.ConditionFalse, "* Node.Ready: container runtime network not ready"
		}
	}
	for age, want := range map[time.Duration]fleet.Health{59 * time.Second: "Changing", time.Minute: fleet.Problem} {
		if row, _ := fleet.NewNode(m, mirrortest.Now().Add(age)); row.Health != want {
			t.Errorf("not ready since it joined %s ago: %s", age, row.Health)
		}
	}
	m.Status.NodeRef.Name = ""
	if _, ok := fleet.NewNode(m, mirrortest.Now()); ok {
		t.Error("a Machine without a Node has a row")
	}
}

func TestOrderByTrouble(t *testing.T) {
	since := func(minutes int) *metav1.Time {
		at := metav1.NewTime(mirrortest.Now().Add(-time.Duration(minutes) * time.Minute))
		return &at
	}
	rows := []fleet.Cluster{
		{Name: "healthy", Health: "Healthy"},
		{Name: "changing", Health: "Changing"},
		{Name: "paused", Health: "Paused"},
		{Name: "automatic", Health: fleet.Problem, Cause: fleet.Cause{Since: since(60)}},
		{Name: "user-new", Health: fleet.Problem, Cause: fleet.Cause{NeedsUser: true, Since: since(1)}},
		{Name: "user-unknown", Health: fleet.Problem, Cause: fleet.Cause{NeedsUser: true}},
		{Name: "user-old", Health: fleet.Problem, Cause: fleet.Cause{NeedsUser: true, Since: since(9)}},
		{Name: "also-healthy", Health: "Healthy"},
	}
	slices.SortFunc(rows, fleet.CompareClustersByTrouble)
	var got []string
	for _, r := range rows {
		got = append(got, r.Name)
	}
	if diff := cmp.Diff([]string{"user-old", "user-new", "user-unknown", "automatic", "changing", "paused", "also-healthy", "healthy"}, got); diff != "" {
		t.Error(diff)
	}
}
