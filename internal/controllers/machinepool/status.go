package machinepool

import (
	"slices"
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	capierrors "sigs.k8s.io/cluster-api/api/deprecated/errors"

	"k8s.io/utils/ptr"

	"github.com/slipwayhq/slipway/internal/condition"
	"github.com/slipwayhq/slipway/internal/reconciler"
	"github.com/slipwayhq/slipway/internal/reference"
	"github.com/slipwayhq/slipway/internal/version"
)

// counts are the replicas of a pool by state. [report] fills them and passes them to the conditions.
type counts struct {
	replicas, ready, available, upToDate int32
}

// report returns the status and the events of a MachinePool. Package reconciler calls it at the end of each
// reconciliation and writes the status.
func report(s snapshot, p reconciler.Plan, out reconciler.Outcome) reconciler.Report {
	n := count(s)
	j := conditionInput{snapshot: s, counts: n, plan: p}
	status := clusterv1.MachinePoolStatus{
		Conditions:     conditions.Evaluate(j, reconciler.EvaluateOptionsFor(s.Pool, s.Now)),
		Initialization: initialization(s),
		NodeRefs:       nodeRefs(s, out),
		Replicas:       &n.replicas, ReadyReplicas: &n.ready, AvailableReplicas: &n.available, UpToDateReplicas: &n.upToDate,
		Versions:           versions(s),
		ObservedGeneration: s.Pool.Status.ObservedGeneration,
	}
	// The generation is observed only when the pool is complete. Until then it counts as restored (restore.go).
	if out.Err == nil && (isComplete(s) || !s.Pool.DeletionTimestamp.IsZero()) {
		status.ObservedGeneration = s.Pool.Generation
	}
	status.Phase = string(phase(s, n, len(status.NodeRefs)))
	status.Deprecated = &clusterv1.MachinePoolDeprecatedStatus{V1Beta1: deprecated(s, n, status)}
	return reconciler.Report{Status: status, Events: events(s, status)}
}

// initialization returns the initialization status. Its fields never change back to false.
func initialization(s snapshot) clusterv1.MachinePoolInitializationStatus {
	out := s.Pool.Status.Initialization
	yes := true
	if s.infra().IsDone() {
		out.InfrastructureProvisioned = &yes
	}
	if s.Pool.Spec.Template.Spec.Bootstrap.DataSecretName != nil || s.bootstrap().IsDone() {
		out.BootstrapDataSecretCreated = &yes
	}
	return out
}

// nodeRefs returns references to the pool's Nodes in the order of the provider IDs, followed by the Nodes that are
// still to be deleted. If the Nodes cannot be read now, the current references are retained.
func nodeRefs(s snapshot, out reconciler.Outcome) []corev1.ObjectReference {
	if !s.Nodes.Known {
		return s.Pool.Status.NodeRefs
	}
	var refs []corev1.ObjectReference
	for _, id := range s.instances().ids {
		if node, ok := s.Nodes.Items[id]; ok {
			refs = append(refs, refTo(node))
		}
	}
	if hasMachines(s) {
		return refs
	}
	for _, node := range s.Nodes.Retired {
		deleted := slices.ContainsFunc(out.Done, func(a reconciler.Action) bool {
			d, ok := a.(deleteNode)
			return ok && d.UID == node.UID
		})
		if !deleted && node.DeletionTimestamp.IsZero() {
			refs = append(refs, refTo(node))
		}
	}
	return refs
}

func refTo(node corev1.Node) corev1.ObjectReference {
	return corev1.ObjectReference{APIVersion: "v1", Kind: "Node", Name: node.Name, UID: node.UID}
}

// count counts the Machines by their conditions, or the Nodes of a pool without Machines.
func count(s snapshot) counts {
	n := counts{replicas: reportedReplicas(s, s.instances())}
	if !hasMachines(s) {
		return countNodes(s, n)
	}
	for _, m := range s.Machines {
		set := condition.Set(m.Status.Conditions)
		n.ready += boolCount(set.IsTrue(clusterv1.ReadyCondition))
		n.available += boolCount(set.IsTrue(clusterv1.AvailableCondition))
		n.upToDate += boolCount(upToDate(s, m).Status == "True")
	}
	return n
}

func countNodes(s snapshot, n counts) counts {
	if !s.Nodes.Known {
		n.ready, n.available = min(ptr.Deref(s.Pool.Status.ReadyReplicas, 0), n.replicas), min(ptr.Deref(s.Pool.Status.AvailableReplicas, 0), n.replicas)
		n.upToDate = min(ptr.Deref(s.Pool.Status.UpToDateReplicas, 0), n.replicas)
		return n
	}
	want := s.Pool.Spec.Template.Spec.Version
	for _, node := range s.Nodes.Items {
		ready := boolCount(nodeReady(&node))
		n.ready += ready
		n.available += ready
		n.upToDate += boolCount(want == "" || version.Runs(node.Status.NodeInfo.KubeletVersion, want))
	}
	return n
}

func boolCount(b bool) int32 {
	if b {
		return 1
	}
	return 0
}

// versions counts the versions of the Machines, or of the Nodes if the pool has no Machines.
func versions(s snapshot) []clusterv1.StatusVersion {
	n := version.Counts{}
	if hasMachines(s) {
		for _, m := range s.Machines {
			n.Add(m.Spec.Version, 1)
		}
	} else {
		for _, node := range s.Nodes.Items {
			n.Add(node.Status.NodeInfo.KubeletVersion, 1)
		}
	}
	return n.Sorted()
}

// phase returns the phase of the pool. The first matching row applies:
//
//	being deleted                                        Deleting
//	no bootstrap data yet                                Pending
//	infrastructure not provisioned                       Provisioning
//	ready differs from desired, external scaling         Scaling
//	fewer ready than desired                             ScalingUp
//	more replicas than desired                           ScalingDown
//	as many Nodes as replicas                            Running
//	otherwise                                            Provisioned
func phase(s snapshot, n counts, nodes int) clusterv1.MachinePoolPhase {
	want := ptr.Deref(s.Pool.Spec.Replicas, 0)
	in := initialization(s)
	switch {
	case !s.Pool.DeletionTimestamp.IsZero():
		return clusterv1.MachinePoolPhaseDeleting
	case !ptr.Deref(in.BootstrapDataSecretCreated, false):
		return clusterv1.MachinePoolPhasePending
	case !ptr.Deref(in.InfrastructureProvisioned, false):
		return clusterv1.MachinePoolPhaseProvisioning
	case scaledByOthers(s.Pool) && (n.ready != want || n.replicas != want):
		return clusterv1.MachinePoolPhaseScaling
	case n.ready < want:
		return clusterv1.MachinePoolPhaseScalingUp
	case n.replicas > want:
		return clusterv1.MachinePoolPhaseScalingDown
	case nodes == int(want):
		return clusterv1.MachinePoolPhaseRunning
	}
	return clusterv1.MachinePoolPhaseProvisioned
}

func deprecated(s snapshot, n counts, status clusterv1.MachinePoolStatus) *clusterv1.MachinePoolV1Beta1DeprecatedStatus {
	out := &clusterv1.MachinePoolV1Beta1DeprecatedStatus{
		Conditions:    condition.Project(legacy, status.Conditions, s.Pool.GetV1Beta1Conditions()),
		ReadyReplicas: n.ready, AvailableReplicas: n.available, UnavailableReplicas: max(0, n.replicas-n.available),
	}
	f := reference.Failure(s.infra(), s.bootstrap())
	if f.Reason != "" {
		reason := capierrors.MachinePoolStatusFailure(f.Reason)
		out.FailureReason = &reason
	}
	if f.Message != "" {
		message := truncate(f.Message, maxFailureMessage)
		out.FailureMessage = &message
	}
	return out
}

// maxFailureMessage is the maximum length in bytes of a failure's message in the API.
const maxFailureMessage = 10240

// truncate cuts a text at a character boundary.
func truncate(text string, most int) string {
	if len(text) <= most {
		return text
	}
	for most > 0 && !utf8.RuneStart(text[most]) {
		most--
	}
	return text[:most]
}

// nodes returns the event with the number of Nodes.
func nodes(n int) reconciler.Event {
	if n == 1 {
		return reconciler.Normal("SuccessfulSetNodeRefs", "1 Node")
	}
	return reconciler.Normal("SuccessfulSetNodeRefs", "%d Nodes", n)
}

func events(s snapshot, status clusterv1.MachinePoolStatus) []reconciler.Event {
	var out []reconciler.Event
	if ptr.Deref(status.Initialization.InfrastructureProvisioned, false) && !ptr.Deref(s.Pool.Status.Initialization.InfrastructureProvisioned, false) {
		out = append(out, reconciler.Normal("InfrastructureReady", "Infrastructure of the pool is provisioned"))
	}
	if len(status.NodeRefs) != len(s.Pool.Status.NodeRefs) {
		out = append(out, nodes(len(status.NodeRefs)))
	}
	return append(out, reference.Events(s.Pool.Status.Conditions, s.infra(), s.bootstrap())...)
}
