package lifecycle

import (
	"fmt"
	"strings"
	"time"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// Hook is the name of a lifecycle hook.
type Hook string

// The hooks.
const (
	BeforeClusterCreate          Hook = "BeforeClusterCreate"
	AfterControlPlaneInitialized Hook = "AfterControlPlaneInitialized"
	BeforeClusterUpgrade         Hook = "BeforeClusterUpgrade"
	BeforeControlPlaneUpgrade    Hook = "BeforeControlPlaneUpgrade"
	AfterControlPlaneUpgrade     Hook = "AfterControlPlaneUpgrade"
	BeforeWorkersUpgrade         Hook = "BeforeWorkersUpgrade"
	AfterWorkersUpgrade          Hook = "AfterWorkersUpgrade"
	AfterClusterUpgrade          Hook = "AfterClusterUpgrade"
	BeforeClusterDelete          Hook = "BeforeClusterDelete"
	// GenerateUpgradePlan is answered by one handler, which the ClusterClass names.
	GenerateUpgradePlan Hook = "GenerateUpgradePlan"
)

// Facts are all that a decision reads. Nothing in them is changed.
type Facts struct {
	// Cluster has the target version, the annotations, and the condition ControlPlaneInitialized.
	Cluster *clusterv1.Cluster
	// Class is the name of its ClusterClass; Versions are those that the class lists, PlanExtension the handler that it names
	// for upgrade plans, empty where it has none.
	Class         string
	Versions      []string
	PlanExtension string
	// RuntimeSDK is true where extensions are called. Where it is false every hook lets go.
	RuntimeSDK bool
	// ControlPlane is nil where it does not exist.
	ControlPlane *ControlPlane
	// Workers are the MachineDeployments in the order of the topology, then the MachinePools. Those that the topology
	// does not have any more are not among them.
	Workers []Worker
	// Answers to what was asked before in the same reconciliation.
	Answers map[Hook]Answer
}

// ControlPlane is what is known of a control plane.
type ControlPlane struct {
	Kind, Name string
	// Version of its spec; empty: the kind has none.
	Version string
	// Running is the version of its status, the oldest of all its machines; empty: it is being provisioned.
	Running string
	// Scaling is true while it has not the replicas of its spec.
	Scaling bool
}

// Worker is what is known of a MachineDeployment or MachinePool of the topology.
type Worker struct {
	// Kind is MachineDeployment or MachinePool, Topology its name in the topology, Name that of the object.
	Kind, Topology, Name string
	// Exists is false where it is to be created.
	Exists bool
	// Version of its spec.
	Version string
	// Upgrading is true while one of its Machines, or Nodes of a pool, has not this version.
	Upgrading bool
	// RollingOut is true while Machines are replaced by others of the same version.
	RollingOut bool
	// Annotations of its metadata in the topology.
	Annotations map[string]string
}

// Question is a hook to call.
type Question struct {
	Hook Hook
	// Handler to call; empty: all of the hook.
	Handler string
	// From and To are the versions before and after a step. Hooks that come after a step have To only.
	From, To string
	// FromWorkers is the oldest version of the workers, for GenerateUpgradePlan; empty where there are none.
	FromWorkers string
	// Rest are the steps still to come, To included where it comes.
	Rest Route
}

// String implements loop.Question.
func (q Question) String() string {
	words := []string{"what the extensions answer to", string(q.Hook)}
	if q.From != "" {
		words = append(words, "from", q.From)
	}
	if q.To != "" {
		words = append(words, "to", q.To)
	}
	return strings.Join(words, " ")
}

// Answer is what became of a question.
type Answer struct {
	// Handlers that were called, "<handler>.<extension>"; none: no handler of the hook applies.
	Handlers []string
	// Blocking are those that hold back what the hook is about.
	Blocking []Blocker
	// Plan is what GenerateUpgradePlan answered.
	Plan Route
	// Problem is why there is no answer: a call failed, or an extension answered that it failed.
	Problem error
	// Later is after which time to ask again where nothing could be found out now, and that is no fault of anything; zero: it was
	// found out.
	Later time.Duration
}

// Blocker is a handler that holds something back.
type Blocker struct {
	Handler string
	// Message of the extension; empty: it has none.
	Message string
	// Since is when it first did, as far as the manager that runs knows.
	Since time.Time
	// Retry is after which time the handler is called again.
	Retry time.Duration
}

// String says who blocks and why.
func (b Blocker) String() string {
	if b.Message == "" {
		return fmt.Sprintf("handler %s gives no reason", b.Handler)
	}
	return fmt.Sprintf("handler %s: %s", b.Handler, strings.ReplaceAll(b.Message, "\n", " "))
}
