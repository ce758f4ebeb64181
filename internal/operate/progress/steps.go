package progress

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"k8s.io/utils/ptr"

	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/operate/describe"
)

// Step is one condition that a command waits for and displays. Package clusterctl/install shows its waits as steps,
// too.
type Step struct {
	// Name is the name of the step. The reporters recognize a step by it, so it must be unique and must not change.
	Name string
	// Done means that the state is reached.
	Done bool
	// Detail describes the state of the step, or the reason for waiting, in one line; may be empty.
	Detail string
	// DoneWhen describes the state that ends the wait.
	DoneWhen string
}

// Reasons of faults that end a wait, because waiting longer does not help.
const (
	// reasonPaused is the reason when the Cluster, or a rollout in it, is paused.
	reasonPaused = "ClusterPaused"
	// ReasonRefused is the reason when a provider cannot fulfill the spec. `slipway create cluster` recognizes it.
	ReasonRefused = "SpecRefused"
	// reasonDeleted is the reason when the Cluster is being deleted, or gone.
	reasonDeleted = "ClusterDeleted"
)

// noController is the reason that the Cluster controller sets in the condition of a Cluster whose control plane no
// controller reconciles. It must equal the reason in controllers/cluster/unsupported.go.
const noController = "NoController"

// creation returns, for [WaitForCreation], the steps to a cluster whose nodes are all Ready and up to date, and whose
// add-ons are available. The error is an Invalid fault if waiting cannot succeed. The details are the messages displayed by
// `describe cluster`.
func creation(s describe.Snapshot) ([]Step, error) {
	if err := checkWaitable(s); err != nil {
		return nil, err
	}
	b := builder{s, describe.Build(s, describe.Options{})}
	var steps []Step
	if s.Cluster.Spec.Topology.IsDefined() {
		steps = append(steps, b.topology())
	}
	steps = append(steps, b.infrastructure(), b.controlPlane())
	steps = append(steps, b.workers()...)
	available := b.available(done(steps))
	if addons, has := b.addons(); has {
		steps = append(steps, addons)
	}
	return append(steps, available), nil
}

// builder derives steps from a snapshot and its tree. creation, [Deletion] and [LagReason] make one; addons.go and
// workers.go have the other methods.
type builder struct {
	describe.Snapshot
	root *describe.Object
}

// checkWaitable returns an error for a state that a user must change before waiting can succeed.
func checkWaitable(s describe.Snapshot) error {
	c := s.Cluster
	switch {
	case c.DeletionTimestamp != nil:
		return fault.New(fault.Gone, reasonDeleted, "cluster %q is being deleted", c.Name)
	case c.Spec.Paused != nil && *c.Spec.Paused:
		return fault.New(fault.Invalid, reasonPaused,
			"cluster %q is paused: nothing happens until spec.paused is false", c.Name)
	}
	for i := range s.Deployments {
		d := &s.Deployments[i]
		if old := outdated(s, d); d.Spec.Paused != nil && *d.Spec.Paused && old > 0 {
			return fault.New(fault.Invalid, reasonPaused,
				"the rollout of MachineDeployment %s is paused; %s not up to date: nothing happens until spec.paused is false", d.Name, areNodes(old))
		}
	}
	cp := object(s, c.Spec.ControlPlaneRef)
	if has := find(cp, "VersionSupported"); has != nil && has.Status == metav1.ConditionFalse {
		verb := "start"
		if at, _, _ := unstructured.NestedString(cp.Object, "status", "version"); at != "" {
			verb = "be of the version that spec.version says"
		}
		return fault.New(fault.Invalid, ReasonRefused, "the control plane of cluster %q cannot %s: %s", c.Name, verb, flat(has.Message))
	}
	if c := meta.FindStatusCondition(c.Status.Conditions, clusterv1.ClusterControlPlaneInitializedCondition); c != nil && c.Reason == noController {
		return fault.New(fault.Invalid, ReasonRefused, "the control plane of cluster %q cannot start: %s", s.Cluster.Name, flat(c.Message))
	}
	return denied(s)
}

// refusals are condition reasons of Slipway's own providers for problems that a user must solve: the operator does not
// allow the request, or the host cannot fulfill it. They must equal the reasons in packages local, hosted and ssh.
var refusals = []string{"DeniedByPolicy", "SubnetTaken", "NotANodeImage"}

// denied returns an error for the first object that is refused.
func denied(s describe.Snapshot) error {
	refs := slices.SortedFunc(maps.Keys(s.Objects), func(a, b describe.Ref) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Name, b.Name))
	})
	for _, ref := range refs {
		if s.Objects[ref] == nil {
			continue
		}
		for _, c := range describe.ConditionsOf(s.Objects[ref]) {
			if slices.Contains(refusals, c.Reason) && c.Status == metav1.ConditionFalse {
				return fault.New(fault.Invalid, ReasonRefused, "%s %s of cluster %q is refused: %s", ref.Kind, ref.Name, s.Cluster.Name, flat(c.Message))
			}
		}
	}
	return nil
}

func areNodes(n int) string {
	if n == 1 {
		return "1 node is"
	}
	return fmt.Sprintf("%d nodes are", n)
}

// topology returns the step for the reconciliation of the topology.
func (b builder) topology() Step {
	c := b.Cluster
	step := Step{Name: "topology", DoneWhen: "Cluster " + c.Name + " matches ClusterClass " + c.Spec.Topology.ClassRef.Name}
	said := meta.FindStatusCondition(c.Status.Conditions, clusterv1.ClusterTopologyReconciledCondition)
	switch {
	case said == nil:
	case said.Status == metav1.ConditionTrue && said.ObservedGeneration >= c.Generation:
		step.Done = true
	case said.Status != metav1.ConditionTrue:
		step.Detail = flat(said.Message)
	}
	return step
}

// awaitsTopology reports whether a reference is still to be set from the topology.
func (b builder) awaitsTopology(ref clusterv1.ContractVersionedObjectReference) bool {
	return !ref.IsDefined() && b.Cluster.Spec.Topology.IsDefined()
}

func (b builder) infrastructure() Step {
	ref := b.Cluster.Spec.InfrastructureRef
	if b.awaitsTopology(ref) {
		return Step{Name: "infrastructure", DoneWhen: "the topology has created it"}
	}
	step := Step{Name: "infrastructure", DoneWhen: ref.Kind + " " + ref.Name + " reports that it is provisioned"}
	provisioned := b.Cluster.Status.Initialization.InfrastructureProvisioned
	if !ref.IsDefined() || ptr.Deref(provisioned, false) && !b.isConditionFalse(clusterv1.ClusterInfrastructureReadyCondition) {
		step.Done = true
		return step
	}
	if ptr.Deref(provisioned, false) {
		step.DoneWhen = ref.Kind + " " + ref.Name + " reports Ready"
	}
	step.Detail = b.waitsFor(ref, clusterv1.ClusterInfrastructureReadyCondition)
	return step
}

func (b builder) controlPlane() Step {
	ref := b.Cluster.Spec.ControlPlaneRef
	if b.awaitsTopology(ref) {
		return Step{Name: "control plane", DoneWhen: "the topology has created it"}
	}
	step := Step{Name: "control plane", DoneWhen: ref.Kind + " " + ref.Name + " reports that it is available"}
	if !ref.IsDefined() {
		step.DoneWhen = "the first control plane Machine has a Node"
	}
	initialized := ptr.Deref(b.Cluster.Status.Initialization.ControlPlaneInitialized, false)
	available := !ref.IsDefined() || meta.IsStatusConditionTrue(b.Cluster.Status.Conditions, clusterv1.ClusterControlPlaneAvailableCondition)
	change := pendingChange(object(b.Snapshot, ref))
	step.Done = initialized && available && change == ""
	if step.Done {
		return step
	}
	if initialized && available {
		step.DoneWhen = ref.Kind + " " + ref.Name + " is up to date"
	}
	types := []string{clusterv1.ClusterControlPlaneInitializedCondition, clusterv1.ClusterControlPlaneAvailableCondition}
	if initialized {
		types = types[1:]
	}
	parts := []string{change, b.waitsFor(ref, types...)}
	for i := range b.Machines {
		if _, ok := b.Machines[i].Labels[clusterv1.MachineControlPlaneLabel]; ok {
			parts = append(parts, b.issuesOf(b.root.Find("Machine", b.Machines[i].Name)))
		}
	}
	step.Detail = join(parts)
	return step
}

// isConditionFalse reports whether the Cluster has the condition, and it is not True.
func (b builder) isConditionFalse(conditionType string) bool {
	c := meta.FindStatusCondition(b.Cluster.Status.Conditions, conditionType)
	return c != nil && c.Status != metav1.ConditionTrue
}

// waitsFor returns the reason why a part of the cluster is not ready: from the provider's object, which is most
// specific, or else from the conditions of the Cluster. An Unknown condition is always included, because it reports a
// problem with the reference.
func (b builder) waitsFor(ref clusterv1.ContractVersionedObjectReference, types ...string) string {
	if missing := b.Missing[refOf(ref)]; missing != "" {
		return ref.Kind + " " + ref.Name + ": " + missing
	}
	var said []string
	if row := b.root.Find(ref.Kind, ref.Name); row != nil {
		said = b.ownIssues(row)
	}
	silent := len(said) == 0
	for _, t := range types {
		c := meta.FindStatusCondition(b.Cluster.Status.Conditions, t)
		if c != nil && (silent && c.Status == metav1.ConditionFalse || c.Status == metav1.ConditionUnknown) {
			said = append(said, flat(c.Message))
		}
	}
	return join(said)
}

// issuesOf returns the issues of a row and its descendants, prefixed with their names; empty if there are none.
func (b builder) issuesOf(o *describe.Object) string {
	if o == nil {
		return ""
	}
	said := append([]string{o.Missing}, b.ownIssues(o)...)
	for _, c := range o.Children {
		said = append(said, b.issuesOf(c))
	}
	if text := join(said); text != "" {
		return o.Kind + " " + o.Name + ": " + text
	}
	return ""
}

// ownIssues returns the issues of a row, without the replica counts that a step displays itself.
func (b builder) ownIssues(o *describe.Object) []string {
	var out []string
	for _, message := range o.DisplayedIssues() {
		if text := flat(withoutReplicaCounts(message)); text != "" {
			out = append(out, text)
		}
	}
	return out
}

// summaries returns the Cluster conditions that only summarize other objects, each of which has a step.
func summaries() []string {
	return []string{
		clusterv1.ClusterAvailableCondition, clusterv1.ClusterInfrastructureReadyCondition, clusterv1.ClusterControlPlaneInitializedCondition,
		clusterv1.ClusterControlPlaneAvailableCondition, clusterv1.ClusterControlPlaneMachinesReadyCondition,
		clusterv1.ClusterControlPlaneMachinesUpToDateCondition, clusterv1.ClusterWorkersAvailableCondition,
		clusterv1.ClusterWorkerMachinesReadyCondition, clusterv1.ClusterWorkerMachinesUpToDateCondition, clusterv1.ClusterRollingOutCondition,
		clusterv1.ClusterScalingUpCondition, clusterv1.ClusterScalingDownCondition, clusterv1.ClusterRemediatingCondition,
	}
}

// available returns the step for the whole cluster. Until all other steps are done, it omits conditions that would only
// repeat them.
func (b builder) available(all bool) Step {
	step := Step{Name: "cluster", DoneWhen: "Cluster " + b.Cluster.Name + " reports Available"}
	step.Done = all && meta.IsStatusConditionTrue(b.Cluster.Status.Conditions, clusterv1.ClusterAvailableCondition)
	if step.Done {
		return step
	}
	var said []string
	if all {
		said = b.ownIssues(b.root)
	} else {
		for _, c := range b.root.Issues() {
			hasStep := c.Type == clusterv1.ClusterTopologyReconciledCondition && b.Cluster.Spec.Topology.IsDefined()
			if !hasStep && !slices.Contains(summaries(), c.Type) {
				said = append(said, flat(c.Message))
			}
		}
	}
	for _, o := range b.root.Children {
		switch {
		case o.Role == "Addons":
			for _, set := range o.Children {
				said = append(said, b.issuesOf(set))
			}
		case all && o.Role != "Workers":
			said = append(said, b.issuesOf(o))
		}
	}
	step.Detail = join(said)
	return step
}

func refOf(ref clusterv1.ContractVersionedObjectReference) describe.Ref {
	return describe.Ref{Group: ref.APIGroup, Kind: ref.Kind, Name: ref.Name}
}

func object(s describe.Snapshot, ref clusterv1.ContractVersionedObjectReference) *unstructured.Unstructured {
	return s.Objects[refOf(ref)]
}

func find(u *unstructured.Unstructured, conditionType string) *describe.Condition {
	if u == nil {
		return nil
	}
	o := describe.Object{Conditions: describe.ConditionsOf(u)}
	return o.Condition(conditionType)
}
