package managementnode

import (
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/slipwayhq/slipway/internal/local/backend"
)

// snapshot is the observed state of the container and its Node, the input of [decide]. Supervisor.observe reads it.
type snapshot struct {
	// Machine is the container of the node.
	Machine backend.Machine
	// Version is the desired Kubernetes version of the node.
	Version string
	// Bootstrap is the bootstrap progress of a running container.
	Bootstrap backend.Progress
	// Node is the Node in the management cluster, or nil if it does not exist.
	Node *corev1.Node
	// NotReady is the time for which this process has observed a joined Node that is not Ready.
	NotReady time.Duration
	// Recreated is the number of times the container was deleted for a Node that was not Ready, since the Node was
	// last Ready.
	Recreated int
}

// notReadyLimit is the time after which the container of a joined Node that is not Ready is recreated. The limit
// doubles with each attempt up to mostDoublings times, because recreating the container does not help on a slow host.
const (
	notReadyLimit = 10 * time.Minute
	mostDoublings = 4
)

// action is a change to the container or the Node. Supervisor.act executes it, so a new action needs a case there.
type action interface{ String() string }

type (
	// createMachine creates or starts the container.
	createMachine struct{}
	// join runs kubeadm join in the container.
	join struct{}
	// deleteMachine deletes the container.
	deleteMachine struct {
		Why string
		// NotReady is true if the reason is that the Node does not become Ready.
		NotReady bool
	}
	// deleteNode deletes a Node whose container does not exist.
	deleteNode struct{}
)

func (createMachine) String() string { return "create or start the container" }

func (join) String() string { return "join the container with kubeadm" }

func (a deleteMachine) String() string { return "delete the container: " + a.Why }

func (deleteNode) String() string { return "delete Node " + Name + ": its container does not exist" }

// plan lists the actions to run. Without actions, Ready reports whether Pods can run on the node, and Wait is the
// reason if not. [Supervisor.Run] executes the actions in order.
type plan struct {
	Actions []action
	Ready   bool
	Wait    string
}

// decide returns the plan for the observed state. [Supervisor.Run] calls it in each step. It has no side effects; the
// table is in the package documentation.
func decide(s snapshot) plan {
	m := s.Machine
	switch m.State {
	case backend.Foreign:
		return plan{Wait: "container " + m.Name + " on this host does not belong to this management cluster: remove it if it is not needed"}
	case backend.Removing:
		return plan{Wait: "waiting for Docker to remove container " + m.Name}
	}
	if !m.State.Exists() {
		if s.Node != nil { // kubeadm join fails if a Ready Node with the same name exists
			return plan{Actions: []action{deleteNode{}, createMachine{}}}
		}
		return plan{Actions: []action{createMachine{}}}
	}
	if m.NodeVersion != "" && m.NodeVersion != s.Version {
		return plan{Actions: []action{deleteMachine{Why: "it runs Kubernetes " + m.NodeVersion + ", not " + s.Version}}}
	}
	if m.State != backend.Running {
		return plan{Actions: []action{createMachine{}}}
	}
	return decideJoin(s)
}

// decideJoin returns the plan for a running container of the desired version.
func decideJoin(s snapshot) plan {
	switch s.Bootstrap.Phase {
	case backend.NotStarted:
		return plan{Actions: []action{join{}}}
	case backend.InProgress:
		return plan{Wait: "waiting for kubeadm join to end"}
	case backend.Failed:
		return plan{Actions: []action{deleteMachine{Why: "kubeadm join failed: " + lastErrorLine(s.Bootstrap.Log)}}}
	case backend.Interrupted:
		return plan{Actions: []action{deleteMachine{Why: "kubeadm join was interrupted"}}}
	case backend.Unusable:
		return plan{Wait: s.Bootstrap.Log}
	}
	switch {
	case s.Node == nil: // the Node was deleted, and the kubelet of a joined node only registers it again after a restart
		return plan{Actions: []action{deleteMachine{Why: "Node " + Name + " was deleted"}}}
	case isReady(s.Node):
		return plan{Ready: true}
	case s.NotReady >= notReadyLimit<<min(s.Recreated, mostDoublings):
		return plan{Actions: []action{deleteMachine{Why: "Node " + Name + " does not become Ready", NotReady: true}}}
	}
	return plan{Wait: "waiting for Node " + Name + " to become Ready"}
}

func isReady(n *corev1.Node) bool {
	for _, c := range n.Status.Conditions {
		if c.Type == corev1.NodeReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}

// lastErrorLine returns the line of a log that describes the failure: the last line that starts with "error", or else
// the last line.
func lastErrorLine(log string) string {
	lines := strings.Split(strings.TrimSpace(log), "\n")
	for _, line := range slices.Backward(lines) {
		if strings.HasPrefix(strings.TrimSpace(line), "error") {
			return strings.TrimSpace(line)
		}
	}
	return lines[len(lines)-1]
}
