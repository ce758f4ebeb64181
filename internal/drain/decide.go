package drain

import (
	"math"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

const (
	// unreachableGraceSeconds is the grace period of Pods on a Node whose kubelet does not answer, or whose machine was removed.
	unreachableGraceSeconds = 1
	// unreachablePatience is how long ago the deletion of a Pod on such a Node may be before it is waited for no more.
	unreachablePatience = time.Second
)

// View is a Node and what its drain depends on.
type View struct {
	Now  time.Time
	Node *corev1.Node
	// Removed: the machine of the Node does not exist any more. What ran there has ended, and nothing will confirm it.
	Removed bool
	// Pods of the Node.
	Pods []corev1.Pod
	// Orphans are the DaemonSets that Pods name as their controller and that do not exist any more.
	Orphans map[types.NamespacedName]bool
	// Namespaces holds the labels of Namespaces, where a rule asks for them.
	Namespaces map[string]labels.Set
	// Rules that apply, in their order.
	Rules []Rule
}

// Target is a Pod to evict.
type Target struct {
	Pod types.NamespacedName
	UID types.UID
	// GraceSeconds; nil: the Pod's own.
	GraceSeconds *int64
}

// Plan says for each Pod of a Node what is to become of it. Every list is by namespace and name.
type Plan struct {
	// Evict now.
	Evict []Target
	// Going are on their way out.
	Going []types.NamespacedName
	// Later have a higher order than others that are still there.
	Later []types.NamespacedName
	// Awaited are left alone until they complete, AwaitedLater after those of a lower order.
	Awaited, AwaitedLater []types.NamespacedName
	// Stay are not drained.
	Stay []*corev1.Pod
}

// Done reports whether nothing of what has to leave is left.
func (p Plan) Done() bool {
	return len(p.Evict)+len(p.Going)+len(p.Later)+len(p.Awaited)+len(p.AwaitedLater) == 0
}

// fate of a Pod.
type fate int

const (
	stays fate = iota
	leaves
	awaited
)

// Decide says what is to become of the Pods.
//
//	it is deleted, or to complete, and the machine was removed    stays: nothing will confirm it
//	its deletion is old, and the Node does not answer             stays: nothing will confirm it
//	of a DaemonSet that exists, and not finished                  stays: it would come back
//	mirror of a static Pod                                        stays: kubelet runs it
//	label cluster.x-k8s.io/drain                                  as it says
//	the first rule that selects it                                as it says, in its order
//	otherwise                                                     leaves, order 0
//
// Of those that leave or are awaited, the ones of the lowest order come first.
func Decide(v View) Plan {
	type member struct {
		*corev1.Pod
		fate  fate
		order int32
	}
	var members []member
	lowest := int32(math.MaxInt32)
	for _, pod := range sorted(v.Pods) {
		f, order := v.judge(pod)
		members = append(members, member{pod, f, order})
		if f != stays {
			lowest = min(lowest, order)
		}
	}
	var p Plan
	for _, m := range members {
		name := types.NamespacedName{Namespace: m.Namespace, Name: m.Name}
		switch {
		case m.fate == stays:
			p.Stay = append(p.Stay, m.Pod)
		case m.fate == awaited && m.order > lowest:
			p.AwaitedLater = append(p.AwaitedLater, name)
		case m.fate == awaited:
			p.Awaited = append(p.Awaited, name)
		case !m.DeletionTimestamp.IsZero():
			p.Going = append(p.Going, name)
		case m.order > lowest:
			p.Later = append(p.Later, name)
		default:
			p.Evict = append(p.Evict, v.target(m.Pod))
		}
	}
	return p
}

func sorted(pods []corev1.Pod) []*corev1.Pod {
	out := make([]*corev1.Pod, 0, len(pods))
	for i := range pods {
		out = append(out, &pods[i])
	}
	slices.SortFunc(out, byName)
	return out
}

// judge says what is to become of a Pod, and in which order.
func (v View) judge(pod *corev1.Pod) (fate, int32) {
	f, order := v.judgeRunning(pod)
	if v.Removed && (f == awaited || !pod.DeletionTimestamp.IsZero()) {
		return stays, 0
	}
	return f, order
}

// judgeRunning says what is to become of a Pod of a machine that exists.
func (v View) judgeRunning(pod *corev1.Pod) (fate, int32) {
	if at := pod.DeletionTimestamp; !at.IsZero() && Unreachable(v.Node) && v.Now.Sub(at.Time) > unreachablePatience {
		return stays, 0
	}
	if v.ofDaemonSet(pod) && !finished(pod) {
		return stays, 0
	}
	if _, mirror := pod.Annotations[corev1.MirrorPodAnnotationKey]; mirror {
		return stays, 0
	}
	if f, ok := byLabel(pod); ok {
		return f, 0
	}
	for _, r := range v.Rules {
		if r.selects(pod, v.Namespaces) {
			return byRule(r, pod)
		}
	}
	return leaves, 0
}

// byLabel says what the Pod asks for itself; that goes before rules. Case and dashes do not matter.
func byLabel(pod *corev1.Pod) (fate, bool) {
	switch strings.ToLower(strings.ReplaceAll(pod.Labels[clusterv1.PodDrainLabel], "-", "")) {
	case "skip":
		return stays, true
	case "waitcompleted":
		return await(pod), true
	}
	return stays, false
}

func byRule(r Rule, pod *corev1.Pod) (fate, int32) {
	switch r.Behavior {
	case clusterv1.MachineDrainRuleDrainBehaviorSkip:
		return stays, 0
	case clusterv1.MachineDrainRuleDrainBehaviorWaitCompleted:
		return await(pod), 0
	}
	return leaves, r.Order
}

// await is the fate of a Pod that is left alone until it completes: one that has stays as it is.
func await(pod *corev1.Pod) fate {
	if finished(pod) {
		return stays
	}
	return awaited
}

func finished(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
}

func (v View) ofDaemonSet(pod *corev1.Pod) bool {
	name, ok := daemonSetOf(pod)
	return ok && !v.Orphans[name]
}

func daemonSetOf(pod *corev1.Pod) (types.NamespacedName, bool) {
	owner := metav1.GetControllerOf(pod)
	if owner == nil || owner.Kind != "DaemonSet" {
		return types.NamespacedName{}, false
	}
	return types.NamespacedName{Namespace: pod.Namespace, Name: owner.Name}, true
}

func (v View) target(pod *corev1.Pod) Target {
	t := Target{Pod: types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name}, UID: pod.UID}
	if v.Removed || Unreachable(v.Node) {
		seconds := int64(unreachableGraceSeconds)
		t.GraceSeconds = &seconds
	}
	return t
}

// Unreachable reports whether the control plane has heard nothing of the Node's kubelet for some time.
func Unreachable(node *corev1.Node) bool {
	return slices.ContainsFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status == corev1.ConditionUnknown
	})
}
