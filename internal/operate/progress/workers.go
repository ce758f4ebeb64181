package progress

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/slipwayhq/slipway/internal/operate/describe"
	"github.com/slipwayhq/slipway/internal/rollout"
	"github.com/slipwayhq/slipway/sdk/contract"
)

// group is a group of worker nodes managed by one object.
type group struct {
	kind, name                            string
	desired, current, available, upToDate int32
	// unobserved means that the status does not reflect the current generation.
	unobserved bool
}

// workers returns a step for every group of workers, and for every standalone Machine. They are part of [creation].
func (b builder) workers() []Step {
	var steps []Step
	for i := range b.Deployments {
		d := &b.Deployments[i]
		g := group{"MachineDeployment", d.Name, value(d.Spec.Replicas, 1), value(d.Status.Replicas, 0), value(d.Status.AvailableReplicas, 0), 0, false}
		g.upToDate = max(0, g.current-int32(outdated(b.Snapshot, d)))
		g.unobserved = d.Status.ObservedGeneration < d.Generation
		steps = append(steps, b.step(g))
	}
	for i := range b.Sets {
		set := &b.Sets[i]
		if metav1.GetControllerOf(set) == nil && set.Labels[clusterv1.MachineDeploymentNameLabel] == "" {
			g := group{"MachineSet", set.Name, value(set.Spec.Replicas, 1), value(set.Status.Replicas, 0), value(set.Status.AvailableReplicas, 0), 0, false}
			g.upToDate, g.unobserved = g.desired, set.Status.ObservedGeneration < set.Generation // a MachineSet does not replace Machines
			steps = append(steps, b.step(g))
		}
	}
	for i := range b.Pools {
		p := &b.Pools[i]
		g := group{"MachinePool", p.Name, value(p.Spec.Replicas, 1), value(p.Status.Replicas, 0), value(p.Status.AvailableReplicas, 0), 0, false}
		g.upToDate = value(p.Status.UpToDateReplicas, g.desired)
		g.unobserved = p.Status.ObservedGeneration < p.Generation
		steps = append(steps, b.step(g))
	}
	for i := range b.Machines {
		m := &b.Machines[i]
		if _, controlPlane := m.Labels[clusterv1.MachineControlPlaneLabel]; !controlPlane && !grouped(m) {
			steps = append(steps, b.machine(m))
		}
	}
	return steps
}

// grouped reports whether a Machine belongs to a group of workers.
func grouped(m *clusterv1.Machine) bool {
	owner := metav1.GetControllerOf(m)
	return owner != nil && (owner.Kind == "MachineSet" || owner.Kind == "MachinePool") ||
		m.Labels[clusterv1.MachineSetNameLabel] != "" || m.Labels[clusterv1.MachinePoolNameLabel] != "" || m.Labels[clusterv1.MachineDeploymentNameLabel] != ""
}

func (b builder) step(g group) Step {
	step := Step{
		Name:     g.kind + " " + g.name,
		Done:     g.current == g.desired && g.available >= g.desired && g.upToDate >= g.desired && !g.unobserved,
		Detail:   fmt.Sprintf("%d of %d nodes ready", g.available, g.desired),
		DoneWhen: fmt.Sprintf("%d nodes are Ready and up to date", g.desired),
	}
	if g.desired == 1 {
		step.DoneWhen = "1 node is Ready and up to date"
	}
	if step.Done {
		return step
	}
	if g.current > 0 && g.upToDate < g.desired {
		step.Detail += fmt.Sprintf(", %d of %d up to date", g.upToDate, g.desired)
	}
	if g.unobserved {
		step.Detail += ", the last change of the spec has yet to be observed"
	}
	if why := b.why(b.root.Find(g.kind, g.name)); why != "" {
		step.Detail += ": " + why
	}
	return step
}

// LagReason returns the reason why a group of Machines or a control plane does not match its spec; empty if there is
// none. `slipway rollout status` shows it.
func LagReason(s describe.Snapshot, kind, name string) string {
	b := builder{s, describe.Build(s, describe.Options{})}
	return b.why(b.root.Find(kind, name))
}

// why returns the issues of a group, and the issues of the Machine that most likely blocks the others.
func (b builder) why(o *describe.Object) string {
	if o == nil {
		return ""
	}
	said := b.ownIssues(o)
	var machines []*describe.Object
	var add func(*describe.Object)
	add = func(o *describe.Object) {
		for _, c := range o.Children {
			switch c.Kind {
			case "MachineSet":
				said = append(said, b.ownIssues(c)...)
				add(c)
			case "Machine":
				if b.issuesOf(c) != "" {
					machines = append(machines, c)
				}
			default:
				said = append(said, b.issuesOf(c))
			}
		}
	}
	add(o)
	if len(machines) == 0 {
		return join(said)
	}
	// The Machine itself reports the issue, and is more current than the summary.
	said = slices.DeleteFunc(said, func(text string) bool {
		return strings.HasPrefix(text, "Machine ") || strings.HasPrefix(text, "Machines ")
	})
	slices.SortStableFunc(machines, func(a, b *describe.Object) int { return cmp.Compare(urgency(a), urgency(b)) })
	text := join(append(said, b.issuesOf(machines[0])))
	if more := len(machines) - 1; more > 0 {
		text += fmt.Sprintf("; %d more Machines are not as they should be", more)
	}
	return text
}

// urgency orders Machines by how likely they block others: first a Machine that is being deleted, then one that is not
// ready. A Machine that is only out of date blocks nothing.
func urgency(machine *describe.Object) int {
	ready := machine.Condition(clusterv1.MachineReadyCondition)
	switch {
	case machine.DeletedAt != nil:
		return 0
	case ready == nil || ready.Status != metav1.ConditionTrue:
		return 1
	}
	return 2
}

func (b builder) machine(m *clusterv1.Machine) Step {
	step := Step{Name: "Machine " + m.Name, DoneWhen: "Machine " + m.Name + " reports Ready"}
	row := b.root.Find("Machine", m.Name)
	if row == nil {
		return step
	}
	ready := row.Condition(clusterv1.MachineReadyCondition)
	step.Done = ready != nil && ready.Status == metav1.ConditionTrue
	if !step.Done {
		step.Detail = strings.TrimPrefix(b.issuesOf(row), "Machine "+m.Name+": ")
	}
	return step
}

// outdated counts the Machines that a MachineDeployment must replace. It compares the specs, because directly after a
// change no condition reflects it yet.
func outdated(s describe.Snapshot, d *clusterv1.MachineDeployment) int {
	n := 0
	for i := range s.Machines {
		for j := range s.Sets {
			set := &s.Sets[j]
			if isOwned(set, "MachineDeployment", d.Name, clusterv1.MachineDeploymentNameLabel) && isOwned(&s.Machines[i], "MachineSet", set.Name, clusterv1.MachineSetNameLabel) &&
				rollout.UpToDateCondition(&s.Machines[i], set, d, s.Now).Status != metav1.ConditionTrue {
				n++
			}
		}
	}
	return n
}

func isOwned(o metav1.Object, kind, name, label string) bool {
	if c := metav1.GetControllerOf(o); c != nil {
		return c.Kind == kind && c.Name == name
	}
	return o.GetLabels()[label] == name
}

// pendingChange describes a change of the spec that a control plane has not completed; empty if there is none. The step
// of the control plane (steps.go) shows it.
func pendingChange(u *unstructured.Unstructured) string {
	if u == nil {
		return ""
	}
	v := contract.ControlPlane(contract.Object{Unstructured: u, Contract: contract.V1Beta2})
	if want, ok := v.SpecVersion.Get(); ok {
		for _, have := range v.Versions.Or(nil) {
			if strings.TrimPrefix(have.Version, "v") != strings.TrimPrefix(want, "v") {
				return "Kubernetes " + have.Version + " runs, " + want + " is asked for"
			}
		}
	}
	if change := pendingReplicas(v); change != "" {
		return change
	}
	if observed, ok, _ := unstructured.NestedInt64(u.Object, "status", "observedGeneration"); ok && observed < u.GetGeneration() {
		return "the last change of the spec has yet to be observed"
	}
	c := find(u, clusterv1.AvailableCondition)
	if c != nil && c.ObservedGeneration > 0 && c.ObservedGeneration < u.GetGeneration() {
		return "the last change of the spec has yet to be observed"
	}
	return ""
}

// pendingReplicas describes how the replicas of a control plane differ from its spec; empty if they do not, or if it
// has no replicas.
func pendingReplicas(v contract.ControlPlaneView) string {
	desired, asked := v.SpecReplicas.Get()
	if !asked {
		return ""
	}
	if upToDate, counted := v.UpToDateReplicas.Get(); counted && upToDate < desired {
		return fmt.Sprintf("%d of %d replicas up to date", upToDate, desired)
	}
	if there, counted := v.Replicas.Get(); counted && there > desired {
		return fmt.Sprintf("%d replicas exist, %d are asked for", there, desired)
	}
	if available, counted := v.AvailableReplicas.Get(); counted && available < desired {
		return fmt.Sprintf("%d of %d replicas available", available, desired)
	}
	return ""
}

func value(n *int32, otherwise int32) int32 {
	if n == nil {
		return otherwise
	}
	return *n
}
