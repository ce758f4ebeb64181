package rootcause

import (
	"cmp"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/slipwayhq/slipway/internal/operate/describe"
	"github.com/slipwayhq/slipway/internal/redact"
)

// weight orders the problems of one object: the smallest weight explains the state of the object best.
type weight int

const (
	weightPaused   weight = iota
	weightUser            // a wait or a failure that lasts until a user acts
	weightUserTask        // a condition whose reason or message has a remedy for users
	weightFinalizer
	weightAbandoned // no controller has ever acted on the object
	weightDeletion
	weightError
	weightCondition
	weightWait
	weightUnknown
	weightSummary
	weightProgress
	weightWarning // the object is as it should be
)

// problem is one thing that is not as it should be with an object. object.problems computes them, and the search
// follows the best ones.
type problem struct {
	Link
	weight weight
	// on lists the objects that the problem depends on.
	on []Ref
	// fixed is a remedy that the problem itself determines. If it is empty, the remedy follows from reason and message.
	fixed Remedy
	// isMirror is true for conditions that repeat conditions of other objects.
	isMirror bool
	// isConclusive is true for a conclusion from the state of several objects.
	isConclusive bool
	// isTimed is true for a wait that ends with time.
	isTimed bool
	// isSevere is true for a condition of severity Error.
	isSevere bool
}

// isFinal reports whether the cause of the problem is known without looking at other objects.
func (p problem) isFinal() bool {
	return p.isConclusive || p.weight == weightPaused && len(p.on) == 0 || p.weight == weightFinalizer || p.weight == weightAbandoned
}

// isLostConnection reports whether the state of the object is unknown because its workload cluster is not connected.
func (p problem) isLostConnection() bool { return p.Reason == clusterv1.ConnectionDownReason }

// isOfNode reports whether the problem is the state of the Node of a Machine.
func (p problem) isOfNode() bool {
	return p.Type == clusterv1.MachineNodeHealthyCondition || p.Type == clusterv1.MachineNodeReadyCondition
}

// object is an object with its parsed conditions. The search creates one for each object that it visits.
type object struct {
	ref        Ref
	content    *unstructured.Unstructured
	conditions []describe.Condition
	// negative has the condition types that gates of the object list with negative polarity.
	negative []string
}

// maxConditions is the number of conditions of an object that are considered.
const maxConditions = 100

// maxSkew is how much the clocks of a management cluster and of this host may differ. Later times are not trusted.
const maxSkew = 5 * time.Minute

// newObject returns an object without its conditions. It is for objects whose state does not matter.
func newObject(ref Ref, u *unstructured.Unstructured) object { return object{ref: ref, content: u} }

// newObjectAt returns an object with its conditions at a time.
func newObjectAt(ref Ref, u *unstructured.Unstructured, now time.Time) object {
	o := object{ref: ref, content: u, conditions: describe.ConditionsOf(withFewConditions(u))}
	o.conditions = o.conditions[:min(len(o.conditions), maxConditions)]
	for i := range o.conditions {
		at := &o.conditions[i].LastTransitionTime
		at.Time = notAfter(at.Time, now)
	}
	o.negative = negativeGates(u)
	return o
}

// notAfter returns a time that is not after now: now if the clocks may differ so much, else zero for unknown.
func notAfter(at, now time.Time) time.Time {
	switch {
	case !at.After(now):
		return at
	case at.Sub(now) <= maxSkew:
		return now
	}
	return time.Time{}
}

// withFewConditions returns the conditions of an object, up to the limit. It copies nothing.
func withFewConditions(u *unstructured.Unstructured) *unstructured.Unstructured {
	conditions := func(path ...string) []any {
		value, _, _ := unstructured.NestedFieldNoCopy(u.Object, append(path, "conditions")...)
		list, _ := value.([]any)
		return list[:min(len(list), maxConditions)]
	}
	return &unstructured.Unstructured{Object: map[string]any{"status": map[string]any{
		"conditions": conditions("status"),
		"v1beta2":    map[string]any{"conditions": conditions("status", "v1beta2")},
	}}}
}

// isDeleting reports whether the object is being deleted.
func (o object) isDeleting() bool { return o.content.GetDeletionTimestamp() != nil }

func (o object) condition(conditionType string) *describe.Condition {
	i := slices.IndexFunc(o.conditions, func(c describe.Condition) bool { return c.Type == conditionType })
	if i < 0 {
		return nil
	}
	return &o.conditions[i]
}

// cluster returns the name of the Cluster that the object belongs to, or an empty string.
func (o object) cluster() string {
	if o.ref.Kind == clusterv1.ClusterKind && o.ref.Group == clusterv1.GroupVersion.Group {
		return o.ref.Name
	}
	name, _, _ := unstructured.NestedString(o.content.Object, "spec", "clusterName")
	return cmp.Or(o.content.GetLabels()[clusterv1.ClusterNameLabel], name)
}

// problems returns the problems of an object that its own fields report, the most important first.
func (o object) problems(now time.Time) []problem {
	if p, paused := o.pauseProblem(); paused {
		return []problem{p}
	}
	var out []problem
	if o.isDeleting() {
		out = append(out, o.deletionProblem(now))
	}
	if p, abandoned := o.abandonedProblem(now); abandoned {
		out = append(out, p)
	}
	if p, failed := o.failureProblem(); failed {
		out = append(out, p)
	}
	out = append(out, o.conditionProblems(now)...)
	if p, missing := o.contractProblem(now); missing && len(out) == 0 {
		out = append(out, p)
	}
	sortProblems(out)
	return out
}

// mostImportant returns problems in order, with times that are not after now. It drops warnings beside other
// problems.
func mostImportant(problems []problem, now time.Time) []problem {
	for i := range problems {
		problems[i].Since = notAfter(problems[i].Since, now)
	}
	sortProblems(problems)
	if len(problems) > 0 && problems[0].weight < weightWarning {
		problems = slices.DeleteFunc(problems, func(p problem) bool { return p.weight == weightWarning })
	}
	return problems
}

func sortProblems(problems []problem) {
	slices.SortStableFunc(problems, func(a, b problem) int {
		return cmp.Or(cmp.Compare(a.weight, b.weight), compareSince(a.Since, b.Since))
	})
}

// compareSince sorts by time; unknown times come last.
func compareSince(a, b time.Time) int {
	switch {
	case a.IsZero() || b.IsZero():
		return cmp.Compare(isUnknown(a), isUnknown(b))
	default:
		return a.Compare(b)
	}
}

func isUnknown(t time.Time) int {
	if t.IsZero() {
		return 1
	}
	return 0
}

// pauseProblem reports an object that is not reconciled because it or its Cluster is paused.
func (o object) pauseProblem() (problem, bool) {
	_, annotated := o.content.GetAnnotations()[clusterv1.PausedAnnotation]
	set, _, _ := unstructured.NestedBool(o.content.Object, "spec", "paused")
	isCluster := o.ref.Kind == clusterv1.ClusterKind && o.ref.Group == clusterv1.GroupVersion.Group
	reported := o.condition(clusterv1.PausedCondition)
	isReported := reported != nil && reported.Status == metav1.ConditionTrue
	p := problem{weight: weightPaused, Link: Link{Object: o.ref, Reason: clusterv1.PausedReason}}
	if reported != nil && isReported {
		p.Type, p.Since = reported.Type, reported.LastTransitionTime.Time
	}
	switch {
	case isCluster && set:
		p.Message = "Reconciliation is paused by spec.paused"
		p.fixed = resumeCluster()
	case annotated:
		p.Message = "Reconciliation is paused by annotation " + clusterv1.PausedAnnotation
		p.fixed = Remedy{Text: "Resume the {kind}: remove annotation " + clusterv1.PausedAnnotation, Command: "slipway kubectl annotate {resource} {name} -n {namespace} " + clusterv1.PausedAnnotation + "-"}
	case isReported:
		p.Message = cmp.Or(reported.Message, "Reconciliation is paused")
		if name := o.cluster(); name != "" && !isCluster {
			p.on = []Ref{{clusterv1.GroupVersion.Group, clusterv1.ClusterKind, o.ref.Namespace, name}}
		}
		p.fixed = resumeCluster()
	default:
		return problem{}, false
	}
	return p, true
}

func resumeCluster() Remedy {
	return Remedy{Text: "Resume Cluster {cluster}: set spec.paused to false", Command: "slipway kubectl patch cluster {cluster} -n {namespace} --type merge -p '{\"spec\":{\"paused\":false}}'"}
}

// pausedByCluster returns the problem of an object whose Cluster is paused, although no controller has reported it. The
// search adds it for such an object.
func (o object) pausedByCluster() problem {
	return problem{
		weight: weightPaused, on: []Ref{clusterRef(o.ref.Namespace, o.cluster())}, fixed: resumeCluster(),
		Link: Link{Object: o.ref, Reason: clusterv1.PausedReason, Message: "Reconciliation is paused because its Cluster is paused"},
	}
}

// isPausedCluster reports whether an object is a Cluster with spec.paused. The search checks it for the Cluster of an
// object.
func isPausedCluster(u *unstructured.Unstructured) bool {
	set, _, _ := unstructured.NestedBool(u.Object, "spec", "paused")
	return set
}

// failureProblem reports the failure fields of the v1beta1 contract, which a provider sets when it gives up.
func (o object) failureProblem() (problem, bool) {
	for _, path := range [][]string{{"status"}, {"status", "deprecated", "v1beta1"}} {
		message, _, _ := unstructured.NestedString(o.content.Object, append(slices.Clone(path), "failureMessage")...)
		reason, _, _ := unstructured.NestedString(o.content.Object, append(slices.Clone(path), "failureReason")...)
		if message == "" && reason == "" {
			continue
		}
		p := problem{weight: weightUser, Link: Link{Object: o.ref, Reason: reason, Message: clip(cmp.Or(message, reason)), Since: o.troubleSince()}}
		p.fixed = Remedy{
			Text:    "The provider of {kind} gave up: correct the cause in the message, then delete {kind} {name} or its Machine to have it replaced",
			Command: describeText,
		}
		if o.ref.Kind == "Machine" {
			p.fixed = Remedy{Text: "Correct the cause in the message if it can happen again, then delete Machine {name} to have it replaced", Command: deleteMachine}
		}
		if o.isDeleting() { // nothing is to be deleted any more
			p.weight, p.fixed = weightProgress, Remedy{}
		}
		return p, true
	}
	return problem{}, false
}

// troubleSince returns the time when the first condition of the object left its expected status, or zero.
func (o object) troubleSince() (first time.Time) {
	for _, c := range o.conditions {
		at := c.LastTransitionTime.Time
		if !o.isExpected(c) && !at.IsZero() && (first.IsZero() || at.Before(first)) {
			first = at
		}
	}
	return first
}

// clip bounds a text of an object.
func clip(text string) string { return redact.Clip(strings.TrimSpace(text), maxMessage) }
