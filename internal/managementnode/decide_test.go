package managementnode

import (
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/slipwayhq/slipway/internal/local/backend"
)

func nodeThatIs(status corev1.ConditionStatus) *corev1.Node {
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: Name}, Status: corev1.NodeStatus{
		Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: status}},
	}}
}

func TestDecide(t *testing.T) {
	running := backend.Machine{Name: "m", State: backend.Running, NodeVersion: "v1"}
	joined := backend.Progress{Phase: backend.Succeeded}
	tests := map[string]struct {
		reason  string
		in      snapshot
		actions []string
		ready   bool
		wait    string
	}{
		"nothing there": {reason: "the first start", in: snapshot{Machine: backend.Machine{State: backend.Absent}},
			actions: []string{"create or start the container"}},
		"container removed by hand": {reason: "kubeadm does not join under the name of a Node that is there",
			in:      snapshot{Machine: backend.Machine{State: backend.Absent}, Node: nodeThatIs(corev1.ConditionTrue)},
			actions: []string{"delete Node management-node: its container does not exist", "create or start the container"}},
		"only a volume left": {reason: "creating the container deletes it", in: snapshot{Machine: backend.Machine{State: backend.Orphaned}},
			actions: []string{"create or start the container"}},
		"somebody else's": {reason: "nothing is done to what is not ours", in: snapshot{Machine: backend.Machine{Name: "m", State: backend.Foreign}},
			wait: "container m on this host does not belong to this management cluster"},
		"being removed": {reason: "its name is taken until then", in: snapshot{Machine: backend.Machine{Name: "m", State: backend.Removing}},
			wait: "waiting for Docker to remove container m"},
		"stopped": {reason: "a node that has joined continues", in: snapshot{Machine: backend.Machine{State: backend.Stopped}},
			actions: []string{"create or start the container"}},
		"older": {reason: "the program was upgraded; Pods are created anew", in: snapshot{Machine: running, Version: "v2", Bootstrap: joined, Node: nodeThatIs(corev1.ConditionTrue)},
			actions: []string{"delete the container: it runs Kubernetes v1, not v2"}},
		"new": {reason: "", in: snapshot{Machine: running, Version: "v1", Bootstrap: backend.Progress{Phase: backend.NotStarted}},
			actions: []string{"join the container with kubeadm"}},
		"joining": {reason: "", in: snapshot{Machine: running, Version: "v1", Bootstrap: backend.Progress{Phase: backend.InProgress}},
			wait: "waiting for kubeadm join to end"},
		"join failed": {reason: "its log says why; a container that half joined is of no use", in: snapshot{Machine: running, Version: "v1", Bootstrap: backend.Progress{Phase: backend.Failed, Log: "[preflight]\nerror: no route\nslipway: runcmd ended with code 1"}},
			actions: []string{"delete the container: kubeadm join failed: error: no route"}},
		"interrupted": {reason: "what was done is unknown", in: snapshot{Machine: running, Version: "v1", Bootstrap: backend.Progress{Phase: backend.Interrupted}},
			actions: []string{"delete the container: kubeadm join was interrupted"}},
		"no node image": {reason: "a person has to look", in: snapshot{Machine: running, Version: "v1", Bootstrap: backend.Progress{Phase: backend.Unusable, Log: "no shell"}},
			wait: "no shell"},
		"Node deleted": {reason: "a kubelet that runs does not register again", in: snapshot{Machine: running, Version: "v1", Bootstrap: joined},
			actions: []string{"delete the container: Node management-node was deleted"}},
		"starting": {reason: "", in: snapshot{Machine: running, Version: "v1", Bootstrap: joined, Node: nodeThatIs(corev1.ConditionFalse)},
			wait: "waiting for Node management-node to become Ready"},
		"not Ready for long": {reason: "a kubelet that cannot reach the API server does not repair itself", in: snapshot{Machine: running, Version: "v1", Bootstrap: joined, Node: nodeThatIs(corev1.ConditionUnknown), NotReady: 10 * time.Minute},
			actions: []string{"delete the container: Node management-node does not become Ready"}},
		"not Ready for a while": {reason: "a busy host is slow", in: snapshot{Machine: running, Version: "v1", Bootstrap: joined, Node: nodeThatIs(corev1.ConditionUnknown), NotReady: 9 * time.Minute},
			wait: "waiting for Node management-node to become Ready"},
		"not Ready again": {reason: "another container did not help: it gets twice the time", in: snapshot{Machine: running, Version: "v1", Bootstrap: joined, Node: nodeThatIs(corev1.ConditionFalse), NotReady: 19 * time.Minute, Recreated: 1},
			wait: "waiting for Node management-node to become Ready"},
		"not Ready again, for long": {reason: "", in: snapshot{Machine: running, Version: "v1", Bootstrap: joined, Node: nodeThatIs(corev1.ConditionFalse), NotReady: 20 * time.Minute, Recreated: 1},
			actions: []string{"delete the container: Node management-node does not become Ready"}},
		"no word yet": {reason: "", in: snapshot{Machine: running, Version: "v1", Bootstrap: joined, Node: &corev1.Node{}},
			wait: "waiting for Node management-node to become Ready"},
		"ready": {reason: "", in: snapshot{Machine: running, Version: "v1", Bootstrap: joined, Node: nodeThatIs(corev1.ConditionTrue)}, ready: true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got := decide(test.in)
			var actions []string
			for _, a := range got.Actions {
				actions = append(actions, a.String())
			}
			if d := cmp.Diff(test.actions, actions); d != "" {
				t.Errorf("%s (-want +got):\n%s", test.reason, d)
			}
			if got.Ready != test.ready || !strings.Contains(got.Wait, test.wait) || (test.wait == "") != (got.Wait == "") {
				t.Errorf("%s: ready %v, waits %q", test.reason, got.Ready, got.Wait)
			}
		})
	}
}

// S4: time counts from when a Node that has joined is first seen not to be Ready, and not while there is none.
func TestHealth(t *testing.T) {
	begin := time.Date(2026, 11, 28, 0, 0, 0, 0, time.UTC)
	joined := snapshot{Machine: backend.Machine{State: backend.Running}, Bootstrap: backend.Progress{Phase: backend.Succeeded}, Node: nodeThatIs(corev1.ConditionUnknown)}
	ready, none := joined, joined
	ready.Node, none.Node = nodeThatIs(corev1.ConditionTrue), nil
	otherVersion := joined
	otherVersion.Version, otherVersion.Machine.NodeVersion = "v1.36.3", "v1.35.0"
	h := &health{}
	for n, step := range []struct {
		s         snapshot
		minute    int
		notReady  int
		recreated int
		plan      plan
	}{
		{s: joined, minute: 0}, {s: joined, minute: 9, notReady: 9}, {s: ready, minute: 9}, {s: joined, minute: 10},
		{s: joined, minute: 20, notReady: 10, plan: plan{Actions: []action{deleteMachine{Why: "x", NotReady: true}}}},
		{s: none, minute: 21, recreated: 1, plan: plan{Actions: []action{createMachine{}}}},
		{s: joined, minute: 30, recreated: 1}, {s: joined, minute: 49, notReady: 19, recreated: 1}, {s: ready, minute: 50}, {s: joined, minute: 51},
		// A container that is replaced by another version is not one whose Node did not become Ready.
		{s: joined, minute: 56, notReady: 5, plan: decide(otherVersion)}, {s: none, minute: 57}, {s: joined, minute: 58},
	} {
		notReady, recreated := h.observe(step.s, begin.Add(time.Duration(step.minute)*time.Minute))
		if notReady != time.Duration(step.notReady)*time.Minute || recreated != step.recreated {
			t.Errorf("step %d: not Ready for %s, recreated %d times", n, notReady, recreated)
		}
		h.decided(step.plan)
	}
}

// Pods are in the network of the node, so that the host, where the API server runs, reaches webhooks.
func TestPodRange(t *testing.T) {
	n := backend.Network{Name: "n", Subnet: netip.MustParsePrefix("172.16.64.0/18"), Gateway: netip.MustParseAddr("172.16.64.1")}
	got, err := podRange(n)
	if err != nil || got.String() != "172.16.65.0/24" || !n.Subnet.Overlaps(got) {
		t.Errorf("got %s, %v", got, err)
	}
	n.Subnet = netip.MustParsePrefix("172.16.64.0/24")
	if _, err := podRange(n); err == nil || !strings.Contains(err.Error(), "docker network rm n") {
		t.Errorf("a range without room for Pods: %v", err)
	}
}

// The node trusts the authority that it is handed, and the log of a failed join does not show the token.
func TestScript(t *testing.T) {
	s, err := joinScript(joinInput{
		Endpoint: netip.MustParseAddrPort("172.16.64.1:6443"), CA: []byte("PEM"), Token: "abcdef.0123456789abcdef",
		PodCIDR: netip.MustParsePrefix("172.16.65.0/24"), Machine: backend.Machine{Name: "m", Address: netip.MustParseAddr("172.16.64.2")},
	})
	if err != nil {
		t.Fatal(err)
	}
	if body := string(s.Body); !strings.Contains(body, "kubeadm join --config /run/kubeadm/join.yaml") && !strings.Contains(body, "base64") {
		t.Errorf("no join: %s", body)
	}
	offline, err := joinScript(joinInput{Offline: true, Machine: backend.Machine{Name: "m"}})
	if err != nil || !strings.Contains(string(offline.Body), "slipway-image-load") || strings.Contains(string(s.Body), "slipway-image-load") {
		t.Errorf("a pull says what to do where there is no way out, and only there: %v", err)
	}
	if s.Timeout != joinTimeout || !strings.HasSuffix(s.Sentinel, "bootstrap-success.complete") {
		t.Errorf("%v %s", s.Timeout, s.Sentinel)
	}
}
