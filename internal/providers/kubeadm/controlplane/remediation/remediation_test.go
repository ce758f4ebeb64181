package remediation

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/kubeadm/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/slipwayhq/slipway/internal/machines"
	"github.com/slipwayhq/slipway/internal/providers/kubeadm/controlplane/quorum"
)

var now = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

type change func(*Machine)

func machine(name string, changes ...change) Machine {
	m := Machine{Member: machines.Member{Machine: &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Name: name}}}, EtcdHealthy: true, ComponentsHealthy: true}
	m.Status.NodeRef.Name = "n-" + name
	for _, c := range changes {
		c(&m)
	}
	return m
}

func lost(m *Machine) { m.EtcdHealthy, m.ComponentsHealthy = false, false; asked(m) }
func asked(m *Machine) {
	m.Status.Conditions = []metav1.Condition{{Type: clusterv1.MachineHealthCheckSucceededCondition, Status: "False"}, {Type: clusterv1.MachineOwnerRemediatedCondition, Status: "False"}}
}
func failed(m *Machine)  { m.Failed = true }
func noNode(m *Machine)  { m.Status.NodeRef.Name = "" }
func deleted(m *Machine) { m.Deleted = true }
func held(m *Machine)    { m.Deleted, m.Held = true, true }
func marked(m *Machine)  { m.Annotations = map[string]string{clusterv1.RemediateMachineAnnotation: ""} }
func replaces(r Record) change {
	return func(m *Machine) { m.Annotations = map[string]string{controlplanev1.RemediationForAnnotation: r.Text()} }
}

func input(all ...Machine) Input {
	in := Input{Now: now, Initialized: true, Managed: true, Machines: all}
	var etcd quorum.Members
	for i, m := range all {
		if m.Status.NodeRef.Name != "" {
			member := quorum.Member{ID: uint64(i + 1), Name: m.Status.NodeRef.Name, Health: quorum.Unhealthy}
			if m.EtcdHealthy {
				member.Health = quorum.Healthy
			}
			etcd = append(etcd, member)
		}
	}
	for i := range in.Machines {
		if id := uint64(i + 1); !etcd.AllowsRemoval(id) {
			in.Machines[i].Obstacle = etcd.Removal(id)
		}
	}
	return in
}

func with(in Input, change func(*Input)) Input { change(&in); return in }

func TestDecide(t *testing.T) { // KC-18, KC-19, KC-20
	before := Record{Machine: "old", Timestamp: now.Add(-10 * time.Minute), RetryCount: 1}
	longAgo := Record{Machine: "old", Timestamp: now.Add(-2 * time.Hour), RetryCount: 1}
	most := func(n int32) func(*Input) { return func(in *Input) { in.Spec.MaxRetry = &n } }
	for name, tc := range map[string]struct {
		reason string
		in     Input
		delete string
		says   string // of the Machine that is chosen but not deleted
		count  int
	}{
		"none asks":         {"", input(machine("a"), machine("b")), "", "", 0},
		"one of three":      {"", input(machine("a", lost), machine("b"), machine("c")), "a", "", 0},
		"marked first":      {"", input(machine("a", lost), machine("b", asked, marked), machine("c"), machine("d"), machine("e")), "b", "", 0},
		"without Node":      {"", input(machine("a", lost), machine("b", asked, noNode), machine("c"), machine("d")), "b", "", 0},
		"two of five":       {"one after the other", input(machine("a", lost), machine("b", lost), machine("c"), machine("d"), machine("e")), "a", "", 0},
		"two of three":      {"no quorum is left", input(machine("a", lost), machine("b", lost), machine("c")), "", "etcd has no quorum: 1 of 3 members healthy", 0},
		"a good one":        {"one of two would be left", input(machine("a", asked), machine("b", func(m *Machine) { m.EtcdHealthy = false }), machine("c")), "", "etcd would have 1 of 2 members healthy", 0},
		"the only one":      {"", input(machine("a", lost)), "", "the only Machine", 0},
		"the first":         {"nothing is lost", with(input(machine("a", lost)), func(in *Input) { in.Initialized = false }), "a", "", 0},
		"deleting":          {"one at a time", input(machine("a", lost), machine("b", deleted), machine("c"), machine("d")), "", "Machine b to be deleted", 0},
		"held":              {"it waits for this one", input(machine("a", lost), machine("b", held), machine("c")), "a", "", 0},
		"provisioning":      {"", input(machine("a", lost), machine("b", noNode), machine("c"), machine("d")), "", "Machine b to be provisioned", 0},
		"never joins":       {"what stands in the way goes first", input(machine("a", lost), machine("b", noNode, failed), machine("c"), machine("d")), "b", "", 0},
		"never joins alone": {"its health check decides", input(machine("a"), machine("b", noNode, failed), machine("c"), machine("d")), "", "", 0},
		"never joins, goes": {"one at a time", input(machine("a", lost), machine("b", noNode, failed, deleted), machine("c"), machine("d")), "", "Machine b to be deleted", 0},
		"created":           {"", with(input(machine("a", lost), machine("b"), machine("c")), func(in *Input) { in.Created = []string{"d"} }), "", "Machine d to be seen", 0},
		"etcd not known":    {"", with(input(machine("a", lost), machine("b"), machine("c")), func(in *Input) { in.EtcdUnknown = "no leader" }), "", "no leader", 0},
		"external etcd":     {"", with(input(machine("a", lost), machine("b")), func(in *Input) { in.Managed = false }), "a", "", 0},
		"nothing else":      {"", input(machine("a", lost), machine("b", func(m *Machine) { m.ComponentsHealthy = false }), machine("c", func(m *Machine) { m.ComponentsHealthy = false })), "", "No other Machine", 0},
		"retry":             {"", input(machine("a", lost, replaces(before)), machine("b"), machine("c")), "a", "", 2},
		"retry, much later": {"a new case", input(machine("a", lost, replaces(longAgo)), machine("b"), machine("c")), "a", "", 0},
		"retries used up":   {"", with(input(machine("a", lost, replaces(before)), machine("b"), machine("c")), most(1)), "", "maxRetry", 0},
		"retries left":      {"", with(input(machine("a", lost, replaces(before)), machine("b"), machine("c")), most(2)), "a", "", 2},
		"too soon":          {"", with(input(machine("a", lost, replaces(before)), machine("b"), machine("c")), func(in *Input) { in.Spec.RetryPeriodSeconds = new(int32(3600)) }), "", "time between two retries", 0},
		"decided already": {"a crash in between counts nothing twice", with(input(machine("a", lost, replaces(before)), machine("b"), machine("c")), func(in *Input) {
			in.InProgress = &Record{Machine: "old", Timestamp: now.Add(-time.Second), RetryCount: 2}
			in.Spec.MaxRetry = new(int32(1))
		}), "a", "", 2},
	} {
		d := Decide(tc.in)
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
	r := Record{Machine: "m", Timestamp: now, RetryCount: 3}
	m := &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{
		controlplanev1.RemediationForAnnotation: r.Text(), controlplanev1.RemediationInProgressAnnotation: "{}",
	}}}
	if got, ok := For(m); !ok || got != r {
		t.Errorf("%+v", got)
	}
	if _, ok := InProgress(m); ok {
		t.Error("an empty record")
	}
}
