package lifecycle

import (
	"fmt"
	"strings"
	"time"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// Hook is the name of a lifecycle hook.
type Hook string

// The hooks of Cluster API. The annotation pending-hooks contains these names, so they must not change.
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
	// GenerateUpgradePlan is served by the one handler that the ClusterClass names.
	GenerateUpgradePlan Hook = "GenerateUpgradePlan"
)

// Input is the observed state of a Cluster with a topology, from which [Next] decides. The topology controller fills it
// in for each decision; it is not modified.
type Input struct {
	// Cluster has the target version, the annotations, and the condition ControlPlaneInitialized.
	Cluster *clusterv1.Cluster
	// Class is the name of the ClusterClass; Versions are the versions that the class lists; PlanExtension is the
	// handler that it names for upgrade plans, if any.
	Class         string
	Versions      []string
	PlanExtension string
	// RuntimeSDK is true if extensions are called. If it is false, no hook blocks.
	RuntimeSDK bool
	// ControlPlane is nil if it does not exist.
	ControlPlane *ControlPlane
	// Workers holds the MachineDeployments in the order of the topology, then the MachinePools. It does not include
	// workers that are no longer in the topology.
	Workers []Worker
	// Results holds the results of the hooks that earlier calls of Next in the same reconciliation requested.
	Results map[Hook]HookResult
}

// ControlPlane is the observed state of a control plane.
type ControlPlane struct {
	Kind, Name string
	// Version in its spec; empty if the kind has none.
	Version string
	// Running is the version in its status, the oldest of all its machines; empty while it is being provisioned.
	Running string
	// Scaling is true while it does not have the replicas in its spec.
	Scaling bool
}

// Worker is the observed state of a MachineDeployment or MachinePool of the topology.
type Worker struct {
	// Kind is MachineDeployment or MachinePool, Topology its name in the topology, Name the name of the object.
	Kind, Topology, Name string
	// Exists is false if it has to be created.
	Exists bool
	// Version in its spec.
	Version string
	// Upgrading is true while one of its Machines, or Nodes of a pool, does not run this version.
	Upgrading bool
	// RollingOut is true while Machines are replaced by Machines of the same version.
	RollingOut bool
	// Annotations of its metadata in the topology.
	Annotations map[string]string
}

// HookCall is a hook to call. Package hook sends it to the handlers. [Next] lists the calls that its decision needs,
// and the topology controller passes them to package hook.
type HookCall struct {
	Hook Hook
	// Handler to call; empty for all handlers of the hook.
	Handler string
	// From and To are the versions before and after a step. Hooks that run after a step have only To.
	From, To string
	// FromWorkers is the oldest version of the workers, for GenerateUpgradePlan; empty if there are none.
	FromWorkers string
	// Rest holds the remaining steps, including To if it is still to come.
	Rest UpgradePlan
}

// String returns a description of the awaited responses, for the log and for messages.
func (q HookCall) String() string {
	words := []string{"responses of extensions to", string(q.Hook)}
	if q.From != "" {
		words = append(words, "from", q.From)
	}
	if q.To != "" {
		words = append(words, "to", q.To)
	}
	return strings.Join(words, " ")
}

// HookResult is the result of calling a hook. Package hook returns it, and the topology controller adds it to the
// Input.
type HookResult struct {
	// Handlers that were called, as "<handler>.<extension>"; empty if no handler of the hook applies.
	Handlers []string
	// Blocking holds the handlers that block the operation.
	Blocking []Blocker
	// Plan is the response to GenerateUpgradePlan.
	Plan UpgradePlan
	// Problem is set if a call failed, or an extension responded with a failure.
	Problem error
	// RetryAfter, if set, is the delay before the next attempt: the hook could not be called now, without this being an
	// error.
	RetryAfter time.Duration
}

// Blocker is a handler that blocks an operation. Package hook creates it from the response of the handler.
type Blocker struct {
	Handler string
	// Message of the extension; may be empty.
	Message string
	// Since is when the handler started to block. It is not known across restarts of the manager.
	Since time.Time
	// RetryAfter is the delay before the handler is called again.
	RetryAfter time.Duration
}

// String returns the handler and its message.
func (b Blocker) String() string {
	if b.Message == "" {
		return fmt.Sprintf("handler %s does not report a reason", b.Handler)
	}
	return fmt.Sprintf("handler %s: %s", b.Handler, strings.ReplaceAll(b.Message, "\n", " "))
}
