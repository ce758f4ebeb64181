package progress

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/slipwayhq/slipway/internal/clusterctl/tree"
	"github.com/slipwayhq/slipway/internal/fault"
)

// Step is one thing that has to become true.
type Step struct {
	// Name says what the step is about.
	Name string
	// Done is true when nothing has to be waited for any more.
	Done bool
	// Detail says how it is, or what it waits for. One line; may be empty.
	Detail string
	// Ends says what will end the wait.
	Ends string
}

// Reasons of the faults that no waiting can mend.
const (
	// ReasonPaused says that the Cluster is paused.
	ReasonPaused = "ClusterPaused"
	// ReasonRefused says that a provider cannot do what the spec asks for.
	ReasonRefused = "SpecRefused"
	// ReasonDeleted says that the Cluster is being deleted, or gone.
	ReasonDeleted = "ClusterDeleted"
)

// Creation returns the steps to a cluster whose nodes are all Ready. The error is an Invalid fault when the
// cluster cannot get there by waiting.
func Creation(s tree.Snapshot) ([]Step, error) {
	if err := hopeless(s); err != nil {
		return nil, err
	}
	steps := []Step{infrastructure(s), controlPlane(s)}
	for i := range s.Deployments {
		d := &s.Deployments[i]
		steps = append(steps, workers("MachineDeployment "+d.Name, machinesOf(s, d.Name, clusterv1.MachineDeploymentNameLabel),
			counts{d.Spec.Replicas, d.Status.Replicas, d.Status.AvailableReplicas}, d.Status.Conditions))
	}
	for i := range s.Pools {
		p := &s.Pools[i]
		steps = append(steps, workers("MachinePool "+p.Name, machinesOf(s, p.Name, clusterv1.MachinePoolNameLabel),
			counts{p.Spec.Replicas, p.Status.Replicas, p.Status.AvailableReplicas}, p.Status.Conditions))
	}
	return whole(steps, available(s)), nil
}

// whole appends the step of the whole, which says something of its own only when all others are done: before, it
// would repeat them.
func whole(steps []Step, all Step) []Step {
	if !done(steps) {
		all.Detail = ""
	}
	return append(steps, all)
}

// hopeless names what a person has to change before waiting makes sense.
func hopeless(s tree.Snapshot) error {
	c := s.Cluster
	switch {
	case c.DeletionTimestamp != nil:
		return fault.New(fault.Gone, ReasonDeleted, "cluster %q is being deleted", c.Name)
	case c.Spec.Paused != nil && *c.Spec.Paused:
		return fault.New(fault.Invalid, ReasonPaused,
			"cluster %q is paused: nothing happens until spec.paused is false", c.Name)
	}
	cp := object(s, c.Spec.ControlPlaneRef)
	if carried := find(cp, "VersionCarried"); carried != nil && carried.Status == metav1.ConditionFalse {
		return fault.New(fault.Invalid, ReasonRefused, "the control plane of cluster %q cannot start: %s", c.Name, flat(carried.Message))
	}
	return nil
}

func infrastructure(s tree.Snapshot) Step {
	ref := s.Cluster.Spec.InfrastructureRef
	step := Step{Name: "infrastructure", Ends: ref.Kind + " " + ref.Name + " reports that it is provisioned"}
	if done := s.Cluster.Status.Initialization.InfrastructureProvisioned; !ref.IsDefined() || done != nil && *done {
		step.Done = true
		return step
	}
	step.Detail = waitsFor(s, ref, clusterv1.ClusterInfrastructureReadyCondition)
	return step
}

func controlPlane(s tree.Snapshot) Step {
	ref := s.Cluster.Spec.ControlPlaneRef
	step := Step{Name: "control plane", Ends: ref.Kind + " " + ref.Name + " reports that it is available"}
	initialized := s.Cluster.Status.Initialization.ControlPlaneInitialized
	if initialized == nil || !*initialized {
		step.Detail = waitsFor(s, ref, clusterv1.ClusterControlPlaneInitializedCondition)
		return step
	}
	if meta.IsStatusConditionTrue(s.Cluster.Status.Conditions, clusterv1.ClusterControlPlaneAvailableCondition) {
		step.Done = true
		return step
	}
	step.Detail = waitsFor(s, ref, clusterv1.ClusterControlPlaneAvailableCondition)
	return step
}

// waitsFor says why a part of the cluster is not there yet: in the words of the provider's object, which knows
// best, else in those of the Cluster's condition.
func waitsFor(s tree.Snapshot, ref clusterv1.ContractVersionedObjectReference, conditionType string) string {
	key := tree.Ref{Group: ref.APIGroup, Kind: ref.Kind, Name: ref.Name}
	if missing := s.Missing[key]; missing != "" {
		return ref.Kind + " " + ref.Name + ": " + missing
	}
	for _, t := range []string{"Ready", "Available"} {
		if c := find(s.Objects[key], t); c != nil && c.Status != metav1.ConditionTrue && c.Message != "" {
			return flat(c.Message)
		}
	}
	if c := meta.FindStatusCondition(s.Cluster.Status.Conditions, conditionType); c != nil && c.Status != metav1.ConditionTrue {
		return flat(c.Message)
	}
	return ""
}

// counts are the counters of a group of workers.
type counts struct{ desired, current, available *int32 }

func workers(name string, machines []clusterv1.Machine, c counts, conditions []metav1.Condition) Step {
	desired, current, available := value(c.desired, 1), value(c.current, 0), value(c.available, 0)
	step := Step{
		Name:   name,
		Done:   current == desired && available >= desired,
		Detail: fmt.Sprintf("%d of %d nodes ready", available, desired),
		Ends:   fmt.Sprintf("%d nodes are Ready", desired),
	}
	if desired == 1 {
		step.Ends = "1 node is Ready"
	}
	if step.Done {
		return step
	}
	if why := slowest(machines, conditions); why != "" {
		step.Detail += ": " + why
	}
	return step
}

// slowest says what the first machine that is not ready waits for, else what the group says of itself.
func slowest(machines []clusterv1.Machine, conditions []metav1.Condition) string {
	for _, m := range machines {
		c := meta.FindStatusCondition(m.Status.Conditions, clusterv1.MachineReadyCondition)
		if c != nil && c.Status != metav1.ConditionTrue && c.Message != "" {
			return "Machine " + m.Name + ": " + flat(c.Message)
		}
	}
	c := meta.FindStatusCondition(conditions, clusterv1.AvailableCondition)
	if c != nil && c.Status != metav1.ConditionTrue {
		return flat(c.Message)
	}
	return ""
}

func available(s tree.Snapshot) Step {
	step := Step{Name: "cluster", Ends: "Cluster " + s.Cluster.Name + " reports Available"}
	c := meta.FindStatusCondition(s.Cluster.Status.Conditions, clusterv1.ClusterAvailableCondition)
	switch {
	case c == nil:
	case c.Status == metav1.ConditionTrue:
		step.Done = true
	default:
		step.Detail = flat(c.Message)
	}
	return step
}

func machinesOf(s tree.Snapshot, name, label string) []clusterv1.Machine {
	var machines []clusterv1.Machine
	for _, m := range s.Machines {
		if m.Labels[label] == name {
			machines = append(machines, m)
		}
	}
	return machines
}

func object(s tree.Snapshot, ref clusterv1.ContractVersionedObjectReference) *unstructured.Unstructured {
	return s.Objects[tree.Ref{Group: ref.APIGroup, Kind: ref.Kind, Name: ref.Name}]
}

func find(u *unstructured.Unstructured, conditionType string) *tree.Condition {
	if u == nil {
		return nil
	}
	o := tree.Object{Conditions: tree.ConditionsOf(u)}
	return o.Condition(conditionType)
}

func value(n *int32, otherwise int32) int32 {
	if n == nil {
		return otherwise
	}
	return *n
}

// flat makes one line of a condition's message.
func flat(message string) string {
	var parts []string
	for line := range strings.Lines(message) {
		if part := strings.TrimLeft(strings.TrimSpace(line), "* "); part != "" {
			parts = append(parts, part)
		}
	}
	var out strings.Builder
	for i, part := range parts {
		switch {
		case i == 0:
		case strings.HasSuffix(parts[i-1], ":"):
			out.WriteString(" ")
		default:
			out.WriteString("; ")
		}
		out.WriteString(part)
	}
	return out.String()
}
