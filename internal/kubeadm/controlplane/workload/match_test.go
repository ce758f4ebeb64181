package workload

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/slipwayhq/slipway/internal/kubeadm/etcd"
	"github.com/slipwayhq/slipway/internal/machines"
)

var quorumNow = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// matching is an input that changes make.
type matching struct{ MatchInput }

// node adds a Node with a static Pod of etcd, which was created so long ago.
func (m *matching) node(name, providerID string, age time.Duration) *matching {
	m.State.Nodes[name] = &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, CreationTimestamp: metav1.NewTime(quorumNow.Add(-age))}, Spec: corev1.NodeSpec{ProviderID: providerID},
		Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}},
	}
	m.State.Pods["etcd-"+name] = &corev1.Pod{}
	return m
}

// notReady makes a Node not ready for so long.
func (m *matching) notReady(name string, since time.Duration) *matching {
	m.State.Nodes[name].Status.Conditions[0] = corev1.NodeCondition{Type: corev1.NodeReady, Status: corev1.ConditionUnknown, LastTransitionTime: metav1.NewTime(quorumNow.Add(-since))}
	return m
}

func (m *matching) member(id uint64, name, address string) *matching {
	one := etcd.Member{ID: id, Name: name, Learner: name == ""}
	if address != "" {
		one.PeerURLs = []string{"https://" + address + ":2380"}
	}
	m.State.Etcd.Members = append(m.State.Etcd.Members, one)
	return m
}

func (m *matching) machine(name string, changes ...func(*machines.OwnedMachine)) *matching {
	one := machines.OwnedMachine{Machine: &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Name: name, CreationTimestamp: metav1.NewTime(quorumNow.Add(-time.Hour))}}}
	one.Spec.Bootstrap.DataSecretName = &name
	for _, change := range changes {
		change(&one)
	}
	m.Machines = append(m.Machines, one)
	return m
}

func begin() *matching {
	return &matching{MatchInput{Now: quorumNow, State: State{Nodes: map[string]*corev1.Node{}, Pods: map[string]*corev1.Pod{}}}}
}

func on(node string) func(*machines.OwnedMachine) {
	return func(m *machines.OwnedMachine) { m.Status.NodeRef.Name = node }
}
func provides(id string) func(*machines.OwnedMachine) {
	return func(m *machines.OwnedMachine) { m.Spec.ProviderID = id }
}
func reached(at ...string) func(*machines.OwnedMachine) {
	return func(m *machines.OwnedMachine) {
		for _, address := range at {
			m.Status.Addresses = append(m.Status.Addresses, clusterv1.MachineAddress{Address: address})
		}
	}
}
func leaving(m *machines.OwnedMachine)         { m.Deleted = true }
func notBootstrapped(m *machines.OwnedMachine) { m.Spec.Bootstrap.DataSecretName = nil }
func young(m *machines.OwnedMachine) {
	m.CreationTimestamp = metav1.NewTime(quorumNow.Add(-time.Minute))
}
func (m *matching) result() map[string]any { return describe(MatchMembers(m.MatchInput), m.Machines) }

// describe is what was found: of each member its class and Machine, and the Machines of which it is not known.
func describe(m MemberMatching, ms machines.OwnedMachines) map[string]any {
	out := map[string]any{}
	for _, member := range m.Members {
		text := string(member.Class)
		if member.Machine != "" {
			text += " " + member.Machine
		}
		out[fmt.Sprint(member.ID, member.Name)] = text
	}
	for _, machine := range ms {
		if m.Doubt(machine.Name) != "" {
			out[machine.Name] = "in doubt"
		}
	}
	return out
}

// A member is matched by all that is known of it, and by nothing that contradicts itself.
func TestMatch(t *testing.T) { // KC-11, KC-12, KC-13
	const long, short = 2 * time.Hour, time.Minute
	type want = map[string]any
	for name, tc := range map[string]struct {
		reason string
		in     *matching
		want   want
	}{
		"nodeRef":              {"", begin().node("x", "", long).member(1, "x", "").machine("a", on("x")), want{"1x": "OfMachine a"}},
		"provider ID":          {"", begin().node("x", "p", long).node("y", "q", long).member(1, "x", "").member(2, "y", "").machine("a", provides("p")).machine("b", provides("q")), want{"1x": "OfMachine a", "2y": "OfMachine b"}},
		"peer URL":             {"", begin().member(1, "x", "10.0.0.1").member(2, "y", "[fd00::2]").machine("a", reached("fd00:0::2")).machine("b", reached("10.0.0.1")), want{"1x": "OfMachine b", "2y": "OfMachine a"}},
		"host name":            {"", begin().member(1, "x", "").member(2, "y", "").machine("a", reached("y.example.org")).machine("b", reached("X")), want{"1x": "OfMachine b", "2y": "OfMachine a"}},
		"its own name":         {"many providers name the host like that", begin().member(1, "a", "").member(2, "b", "").machine("a").machine("b"), want{"1a": "OfMachine a", "2b": "OfMachine b"}},
		"the one that is left": {"", begin().node("x", "", long).node("y", "", short).member(1, "x", "").member(2, "y", "").machine("a", on("x")).machine("b"), want{"1x": "OfMachine a", "2y": "OfMachine b"}},
		"an unnamed one": {"kubeadm has added it", begin().node("x", "", long).member(1, "x", "").member(2, "", "10.0.0.2").machine("a", on("x")).machine("b", young, reached("10.0.0.2")),
			want{"1x": "OfMachine a", "2": "OfMachine b"}},
		"unnamed, with a Node": {"etcd has not started", begin().node("x", "", long).node("y", "", short).member(1, "x", "").member(2, "", "").machine("a", on("x")).machine("b", on("y")),
			want{"1x": "OfMachine a", "2": "OfMachine b"}},
		"unnamed, given up": {"its Node is old", begin().node("x", "", long).node("y", "", long).member(1, "x", "").member(2, "", "").machine("a", on("x")).machine("b", on("y")),
			want{"1x": "OfMachine a", "2": "Orphan"}},
		"two are left": {"either may be either", begin().node("x", "", short).node("y", "", short).member(1, "x", "").member(2, "y", "").machine("a").machine("b"),
			want{"1x": "Joining", "2y": "Joining", "a": "in doubt", "b": "in doubt"}},
		"an older Node":    {"it may be that Machines were moved", begin().node("x", "", long).member(1, "x", "").machine("a"), want{"1x": "Joining", "a": "in doubt"}},
		"not bootstrapped": {"it cannot have joined", begin().node("x", "", long).member(1, "x", "").machine("a", notBootstrapped), want{"1x": "Foreign"}},
		"two claims": {"one provider ID of two Nodes names neither", begin().node("x", "p", short).node("y", "p", short).member(1, "x", "10.0.0.1").member(2, "y", "10.0.0.2").
			machine("a", on("x"), reached("10.0.0.1")).machine("b", provides("p"), reached("10.0.0.2")), want{"1x": "OfMachine a", "2y": "OfMachine b"}},
		"nodeRef and address contradict": {"a Node claims to be another one", begin().node("x", "p", short).node("y", "", short).member(1, "x", "10.0.0.1").member(2, "y", "10.0.0.2").
			machine("a", reached("10.0.0.1")).machine("b", on("x"), provides("p"), reached("10.0.0.2")), want{"1x": "Disputed", "2y": "Disputed", "a": "in doubt", "b": "in doubt"}},
		"a dispute, and one joins": {"a Node claims to be the one that joins", begin().node("x", "p", long).member(1, "x", "10.0.0.1").member(2, "", "").
			machine("a", reached("10.0.0.1")).machine("b", young, provides("p")), want{"1x": "Disputed", "2": "Joining", "a": "in doubt", "b": "in doubt"}},
		"nodeRef of a worker": {"it proves nothing", begin().node("x", "", long).member(1, "x", "").machine("a", on("w")), want{"1x": "Joining", "a": "in doubt"}},
		"loopback":            {"all hosts have it", begin().member(1, "x", "127.0.0.1").member(2, "y", "127.0.0.1").machine("a", reached("127.0.0.1")).machine("b", reached("127.0.0.1")), want{"1x": "Joining", "2y": "Joining", "a": "in doubt", "b": "in doubt"}},
		"left behind":         {"", begin().node("x", "", long).node("y", "", long).notReady("y", 2*time.Minute).member(1, "x", "").member(2, "y", "").machine("a", on("x")), want{"1x": "OfMachine a", "2y": "Orphan"}},
		"slow":                {"its kubelet may come back", begin().node("x", "", long).node("y", "", long).notReady("y", 30*time.Second).member(1, "x", "").member(2, "y", "").machine("a", on("x")), want{"1x": "OfMachine a", "2y": "Foreign"}},
		"no Node":             {"", begin().node("x", "", long).member(1, "x", "").member(2, "y", "").machine("a", on("x")), want{"1x": "OfMachine a", "2y": "Orphan"}},
		"no Node, one joins":  {"the member may be ahead of its Node", begin().node("x", "", long).member(1, "x", "").member(2, "y", "").member(3, "z", "").machine("a", on("x")).machine("b", young), want{"1x": "OfMachine a", "2y": "Joining", "3z": "Joining", "b": "in doubt"}},
		"the one that joins leaves": {"no one waits for the members", begin().node("x", "", long).member(1, "x", "").member(2, "y", "").member(3, "z", "").machine("a", on("x")).machine("b", young, leaving),
			want{"1x": "OfMachine a", "2y": "Orphan", "3z": "Orphan", "b": "in doubt"}},
	} {
		if diff := cmp.Diff(tc.want, tc.in.result()); diff != "" {
			t.Errorf("%s: %s (-want +got)\n%s", name, tc.reason, diff)
		}
	}
}

// A member that was not asked is unknown: no quorum is lost by it, and none is counted on it.
func TestUnknown(t *testing.T) { // KC-19
	ms := EtcdMembers{{ID: 1, Name: "a", Health: MemberHealthy}, {ID: 2, Name: "b"}}
	if !ms.HasQuorum() || !ms.AllowsRemoval(2) || ms.AllowsRemoval(1) {
		t.Errorf("quorum %v, the unknown one may go %v, the healthy one %v", ms.HasQuorum(), ms.AllowsRemoval(2), ms.AllowsRemoval(1))
	}
	if got := ms.Removal(1); got != "etcd would have 0 of 1 members healthy and 1 unknown, 1 needed" {
		t.Error(got)
	}
	if got := (EtcdMember{ID: 0x3e8}).Text(); got != "3e8, which has not started" {
		t.Error(got)
	}
}
