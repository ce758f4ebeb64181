package managementnode

import (
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/slipwayhq/slipway/internal/providers/local/backend"
)

// Snapshot is what was read.
type Snapshot struct {
	// Machine is the container.
	Machine backend.Machine
	// Version is the Kubernetes version that the node is to have.
	Version string
	// Bootstrap of a container that runs.
	Bootstrap backend.Progress
	// Node in the management cluster; nil: there is none.
	Node *corev1.Node
	// NotReady is how long the Node has been seen without being Ready, since this process began.
	NotReady time.Duration
	// Recreated is how often the container was deleted for that since the Node was last Ready.
	Recreated int
}

// notReadyLimit is how long a Node that has joined may be without being Ready before its container is created again. It doubles each
// time, because a host that is slow is not helped by another container.
const (
	notReadyLimit = 10 * time.Minute
	mostDoublings = 4
)

// Action is one change.
type Action interface{ String() string }

type (
	// CreateMachine creates the container, or starts it.
	CreateMachine struct{}
	// Join runs kubeadm join in the container.
	Join struct{}
	// DeleteMachine deletes the container, for a reason.
	DeleteMachine struct{ Why string }
	// DeleteNode deletes the Node of a container that does not exist.
	DeleteNode struct{}
)

// String implements Action.
func (CreateMachine) String() string { return "create or start the container" }

// String implements Action.
func (Join) String() string { return "join the container with kubeadm" }

// String implements Action.
func (a DeleteMachine) String() string { return "delete the container: " + a.Why }

// String implements Action.
func (DeleteNode) String() string { return "delete Node " + Name + ": its container does not exist" }

// Plan is what to do now. With nothing to do, Ready says whether Pods can run, and Wait why not.
type Plan struct {
	Actions []Action
	Ready   bool
	Wait    string
}

// Decide returns what to do.
func Decide(s Snapshot) Plan {
	m := s.Machine
	switch m.State {
	case backend.Foreign:
		return Plan{Wait: "container " + m.Name + " on this host does not belong to this management cluster: remove it if it is not needed"}
	case backend.Removing:
		return Plan{Wait: "waiting for Docker to remove container " + m.Name}
	}
	if !m.State.Exists() {
		if s.Node != nil { // kubeadm refuses to join under the name of a Node that is Ready
			return Plan{Actions: []Action{DeleteNode{}, CreateMachine{}}}
		}
		return Plan{Actions: []Action{CreateMachine{}}}
	}
	if m.NodeVersion != "" && m.NodeVersion != s.Version {
		return Plan{Actions: []Action{DeleteMachine{"it runs Kubernetes " + m.NodeVersion + ", not " + s.Version}}}
	}
	if m.State != backend.Running {
		return Plan{Actions: []Action{CreateMachine{}}}
	}
	return decideJoin(s)
}

func decideJoin(s Snapshot) Plan {
	switch s.Bootstrap.Phase {
	case backend.NotStarted:
		return Plan{Actions: []Action{Join{}}}
	case backend.InProgress:
		return Plan{Wait: "waiting for kubeadm join to end"}
	case backend.Failed:
		return Plan{Actions: []Action{DeleteMachine{"kubeadm join failed: " + lastWords(s.Bootstrap.Log)}}}
	case backend.Interrupted:
		return Plan{Actions: []Action{DeleteMachine{"kubeadm join was interrupted"}}}
	case backend.Unusable:
		return Plan{Wait: s.Bootstrap.Log}
	}
	switch {
	case s.Node == nil: // it was deleted: the kubelet of a node that has joined does not register again until it is restarted
		return Plan{Actions: []Action{DeleteMachine{"Node " + Name + " was deleted"}}}
	case isReady(s.Node):
		return Plan{Ready: true}
	case s.NotReady >= notReadyLimit<<min(s.Recreated, mostDoublings):
		return Plan{Actions: []Action{DeleteMachine{"Node " + Name + " does not become Ready"}}}
	}
	return Plan{Wait: "waiting for Node " + Name + " to become Ready"}
}

func isReady(n *corev1.Node) bool {
	for _, c := range n.Status.Conditions {
		if c.Type == corev1.NodeReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}

// lastWords is the line of a log that says what went wrong: the last one about an error, else the last one.
func lastWords(log string) string {
	lines := strings.Split(strings.TrimSpace(log), "\n")
	for _, line := range slices.Backward(lines) {
		if strings.HasPrefix(strings.TrimSpace(line), "error") {
			return strings.TrimSpace(line)
		}
	}
	return lines[len(lines)-1]
}
