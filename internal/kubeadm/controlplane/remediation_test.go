package controlplane

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/kubeadm/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/slipwayhq/slipway/internal/kubeadm/controlplane/workload"
	"github.com/slipwayhq/slipway/internal/machines"
)

var remediationNow = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

type remediationChange func(*memberMachine)

func testRemediationMachine(name string, changes ...remediationChange) memberMachine {
	m := memberMachine{OwnedMachine: machines.OwnedMachine{Machine: &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Name: name}}}, EtcdHealthy: true, ComponentsHealthy: true}
	m.Status.NodeRef.Name = "n-" + name
	for _, c := range changes {
		c(&m)
	}
	return m
}

func lost(m *memberMachine) { m.EtcdHealthy, m.ComponentsHealthy = false, false; asked(m) }
func asked(m *memberMachine) {
	m.Status.Conditions = []metav1.Condition{{Type: clusterv1.MachineHealthCheckSucceededCondition, Status: "False"}, {Type: clusterv1.MachineOwnerRemediatedCondition, Status: "False"}}
}
func remediationFailed(m *memberMachine) { m.Failed = true }
func noNode(m *memberMachine)            { m.Status.NodeRef.Name = "" }
func deleted(m *memberMachine)           { m.Deleted = true }
func held(m *memberMachine)              { m.Deleted, m.Held = true, true }
func remediationMarked(m *memberMachine) {
	m.Annotations = map[string]string{clusterv1.RemediateMachineAnnotation: ""}
}
func replaces(r remediationRecord) remediationChange {
	return func(m *memberMachine) {
		m.Annotations = map[string]string{controlplanev1.RemediationForAnnotation: r.Text()}
	}
}

func testRemediationInput(all ...memberMachine) snapshot {
	in := snapshot{Now: remediationNow, ControlPlane: &controlplanev1.KubeadmControlPlane{}, Members: all, Workload: workload.State{At: remediationNow}}
	in.ControlPlane.Status.Initialization.ControlPlaneInitialized = new(true)
	var etcd workload.EtcdMembers
	for i, m := range all {
		if m.Status.NodeRef.Name != "" {
			member := workload.EtcdMember{ID: uint64(i + 1), Name: m.Status.NodeRef.Name, Health: workload.MemberUnhealthy}
			if m.EtcdHealthy {
				member.Health = workload.MemberHealthy
			}
			etcd = append(etcd, member)
		}
	}
	for i := range in.Members {
		if id := uint64(i + 1); !etcd.AllowsRemoval(id) {
			in.Members[i].Obstacle = etcd.Removal(id)
		}
	}
	return in
}

func with(in snapshot, change func(*snapshot)) snapshot {
	change(&in)
	return in
}

func TestRemediationDecide(t *testing.T) { // KC-18, KC-19, KC-20
	before := remediationRecord{Machine: "old", Timestamp: remediationNow.Add(-10 * time.Minute), RetryCount: 1}
	longAgo := remediationRecord{Machine: "old", Timestamp: remediationNow.Add(-2 * time.Hour), RetryCount: 1}
	most := func(n int32) func(*snapshot) {
		return func(in *snapshot) { in.ControlPlane.Spec.Remediation.MaxRetry = &n }
	}
	for name, tc := range map[string]struct {
		reason string
		in     snapshot
		delete string
		says   string // of the Machine that is chosen but not deleted
		count  int
	}{
		"none asks":         {"", testRemediationInput(testRemediationMachine("a"), testRemediationMachine("b")), "", "", 0},
		"one of three":      {"", testRemediationInput(testRemediationMachine("a", lost), testRemediationMachine("b"), testRemediationMachine("c")), "a", "", 0},
		"marked first":      {"", testRemediationInput(testRemediationMachine("a", lost), testRemediationMachine("b", asked, remediationMarked), testRemediationMachine("c"), testRemediationMachine("d"), testRemediationMachine("e")), "b", "", 0},
		"without Node":      {"", testRemediationInput(testRemediationMachine("a", lost), testRemediationMachine("b", asked, noNode), testRemediationMachine("c"), testRemediationMachine("d")), "b", "", 0},
		"two of five":       {"one after the other", testRemediationInput(testRemediationMachine("a", lost), testRemediationMachine("b", lost), testRemediationMachine("c"), testRemediationMachine("d"), testRemediationMachine("e")), "a", "", 0},
		"two of three":      {"no quorum is left", testRemediationInput(testRemediationMachine("a", lost), testRemediationMachine("b", lost), testRemediationMachine("c")), "", "etcd has no quorum: 1 of 3 members healthy", 0},
		"a good one":        {"one of two would be left", testRemediationInput(testRemediationMachine("a", asked), testRemediationMachine("b", func(m *memberMachine) { m.EtcdHealthy = false }), testRemediationMachine("c")), "", "etcd would have 1 of 2 members healthy", 0},
		"the only one":      {"", testRemediationInput(testRemediationMachine("a", lost)), "", "with its only Machine", 0},
		"the first":         {"nothing is lost", with(testRemediationInput(testRemediationMachine("a", lost)), func(in *snapshot) { in.ControlPlane.Status.Initialization.ControlPlaneInitialized = nil }), "a", "", 0},
		"deleting":          {"one at a time", testRemediationInput(testRemediationMachine("a", lost), testRemediationMachine("b", deleted), testRemediationMachine("c"), testRemediationMachine("d")), "", "Machine b to be deleted", 0},
		"held":              {"it waits for this one", testRemediationInput(testRemediationMachine("a", lost), testRemediationMachine("b", held), testRemediationMachine("c")), "a", "", 0},
		"provisioning":      {"", testRemediationInput(testRemediationMachine("a", lost), testRemediationMachine("b", noNode), testRemediationMachine("c"), testRemediationMachine("d")), "", "Machine b to be provisioned", 0},
		"never joins":       {"what stands in the way goes first", testRemediationInput(testRemediationMachine("a", lost), testRemediationMachine("b", noNode, remediationFailed), testRemediationMachine("c"), testRemediationMachine("d")), "b", "", 0},
		"never joins alone": {"its health check decides", testRemediationInput(testRemediationMachine("a"), testRemediationMachine("b", noNode, remediationFailed), testRemediationMachine("c"), testRemediationMachine("d")), "", "", 0},
		"never joins, goes": {"one at a time", testRemediationInput(testRemediationMachine("a", lost), testRemediationMachine("b", noNode, remediationFailed, deleted), testRemediationMachine("c"), testRemediationMachine("d")), "", "Machine b to be deleted", 0},
		"created":           {"", with(testRemediationInput(testRemediationMachine("a", lost), testRemediationMachine("b"), testRemediationMachine("c")), func(in *snapshot) { in.Created = []string{"d"} }), "", "Machine d to be visible in the cache", 0},
		"etcd not known":    {"", with(testRemediationInput(testRemediationMachine("a", lost), testRemediationMachine("b"), testRemediationMachine("c")), func(in *snapshot) { in.Workload.Etcd.Problem = "no leader" }), "", "no leader", 0},
		"external etcd": {"", with(testRemediationInput(testRemediationMachine("a", lost), testRemediationMachine("b")), func(in *snapshot) {
			in.ControlPlane.Spec.KubeadmConfigSpec.ClusterConfiguration.Etcd.External.Endpoints = []string{"https://e"}
		}), "a", "", 0},
		"nothing else":      {"", testRemediationInput(testRemediationMachine("a", lost), testRemediationMachine("b", func(m *memberMachine) { m.ComponentsHealthy = false }), testRemediationMachine("c", func(m *memberMachine) { m.ComponentsHealthy = false })), "", "No other Machine", 0},
		"retry":             {"", testRemediationInput(testRemediationMachine("a", lost, replaces(before)), testRemediationMachine("b"), testRemediationMachine("c")), "a", "", 2},
		"retry, much later": {"a new case", testRemediationInput(testRemediationMachine("a", lost, replaces(longAgo)), testRemediationMachine("b"), testRemediationMachine("c")), "a", "", 0},
		"retries used up":   {"", with(testRemediationInput(testRemediationMachine("a", lost, replaces(before)), testRemediationMachine("b"), testRemediationMachine("c")), most(1)), "", "maxRetry", 0},
		"retries left":      {"", with(testRemediationInput(testRemediationMachine("a", lost, replaces(before)), testRemediationMachine("b"), testRemediationMachine("c")), most(2)), "a", "", 2},
		"too soon":          {"", with(testRemediationInput(testRemediationMachine("a", lost, replaces(before)), testRemediationMachine("b"), testRemediationMachine("c")), func(in *snapshot) { in.ControlPlane.Spec.Remediation.RetryPeriodSeconds = new(int32(3600)) }), "", "retry period", 0},
		"decided already": {"a crash in between counts nothing twice", with(testRemediationInput(testRemediationMachine("a", lost, replaces(before)), testRemediationMachine("b"), testRemediationMachine("c")), func(in *snapshot) {
			record := remediationRecord{Machine: "old", Timestamp: remediationNow.Add(-time.Second), RetryCount: 2}
			in.ControlPlane.Annotations = map[string]string{controlplanev1.RemediationInProgressAnnotation: record.Text()}
			in.ControlPlane.Spec.Remediation.MaxRetry = new(int32(1))
		}), "a", "", 2},
	} {
		d := tc.in.planRemediation()
		said := ""
		for _, v := range d.Verdicts {
			if !strings.HasPrefix(v.Message, "Waiting for Machine a to be replaced first") {
				said += v.Message
			}
		}
		if d.Delete != tc.delete || tc.delete == "" && !strings.Contains(said, tc.says) || d.Record.RetryCount != tc.count {
			t.Errorf("%s: %s: deletes %q, says %q, record %+v", name, tc.reason, d.Delete, said, d.Record)
		}
	}
}

// What is noted can be read again, and what others wrote there is no record.
func TestRecord(t *testing.T) { // KC-20
	r := remediationRecord{Machine: "m", Timestamp: remediationNow, RetryCount: 3}
	m := &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{
		controlplanev1.RemediationForAnnotation: r.Text(), controlplanev1.RemediationInProgressAnnotation: "{}",
	}}}
	if got, ok := remediationFor(m); !ok || got != r {
		t.Errorf("%+v", got)
	}
	if _, ok := remediationInProgress(m); ok {
		t.Error("an empty record")
	}
}

// FuzzRecord: the record of a remediation in an annotation cannot be read, or says the same when it is written again.
func FuzzRecord(f *testing.F) {
	for _, text := range []string{
		`{"machine":"m","timestamp":"2026-01-02T03:04:05Z","retryCount":2}`, `{"machine":"","timestamp":"2026-01-02T03:04:05Z"}`, `{`, `{"machine":"m","retryCount":-1}`,
		`{"machine":"m","timestamp":"9999-12-31T23:59:59.999999999+23:59","retryCount":99999999999}`,
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		r, ok := parseRemediationRecord(text)
		if !ok {
			return
		}
		if r.RetryCount < 0 || r.RetryCount > 1<<31-1 {
			t.Errorf("%q has been tried %d times", text, r.RetryCount)
		}
		again, ok := parseRemediationRecord(r.Text())
		if !ok || again.Machine != r.Machine || again.RetryCount != r.RetryCount || !again.Timestamp.Equal(r.Timestamp) {
			t.Errorf("%q is %v and then %v, %v", text, r, again, ok)
		}
	})
}
