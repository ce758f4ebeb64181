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
	// unreachableGraceSeconds is the grace period for Pods on a Node whose kubelet is unreachable or whose machine
	// was removed.
	unreachableGraceSeconds = 1
	// unreachablePatience is how long the drain waits for the deletion of a Pod on such a Node.
	unreachablePatience = time.Second
)

// View is the input of [Decide]: a Node and everything that its drain depends on. [ReadView] fills it, except for Now
// and Removed, which its callers set.
type View struct {
	Now  time.Time
	Node *corev1.Node
	// Removed is set if the machine of the Node no longer exists. Its Pods have stopped, but no kubelet will
	// confirm that.
	Removed bool
	// Pods are the Pods on the Node.
	Pods []corev1.Pod
	// Orphans are DaemonSets that Pods name as their controller but that no longer exist.
	Orphans map[types.NamespacedName]bool
	// Namespaces contains the labels of Namespaces if a rule selects by them.
	Namespaces map[string]labels.Set
	// Rules are the applicable rules in their order of precedence.
	Rules []Rule
}

// Target is a Pod to evict. [Evict] takes the list.
type Target struct {
	Pod types.NamespacedName
	UID types.UID
	// GraceSeconds overrides the Pod's grace period unless it is nil.
	GraceSeconds *int64
}

// Plan assigns every Pod of a Node to a step of the drain. The lists are sorted by namespace and name. [Evict] and
// [Describe] read it.
type Plan struct {
	// Evict lists the Pods to evict now.
	Evict []Target
	// Terminating lists the Pods that are already being deleted.
	Terminating []types.NamespacedName
	// Later lists the Pods to evict after Pods with a lower order.
	Later []types.NamespacedName
	// Awaited lists the Pods that must complete without eviction, AwaitedLater those that must do so after Pods
	// with a lower order.
	Awaited, AwaitedLater []types.NamespacedName
	// Stay lists the Pods that are not drained.
	Stay []*corev1.Pod
}

// Done reports whether no Pod is left to evict or to wait for. The Machine controller and `slipway hosts reboot` end
// the drain when it is true.
func (p Plan) Done() bool {
	return len(p.Evict)+len(p.Terminating)+len(p.Later)+len(p.Awaited)+len(p.AwaitedLater) == 0
}

// behavior is the drain behavior of a Pod.
type behavior int

const (
	stays behavior = iota
	leaves
	awaited
)

// Decide computes the drain behavior of all Pods on the Node. The Machine controller calls it in each reconciliation of
// a Machine that is drained, and `slipway hosts reboot` until the Node is drained. It is pure. Cluster API defines the
// behavior, except for removed machines. The first row that applies decides:
//
//	being deleted or awaited, and the machine was removed         stays: no kubelet will confirm the end
//	deleted some time ago, and the Node is unreachable            stays: no kubelet will confirm the end
//	controlled by an existing DaemonSet, and not finished         stays: it would be recreated
//	mirror of a static Pod                                        stays: the kubelet runs it
//	label cluster.x-k8s.io/drain is skip or wait-completed        as the label specifies
//	the first rule that selects it                                as the rule specifies; evicted in the rule's order
//	otherwise                                                     evicted, order 0
//
// Pods with the lowest order are evicted or awaited first.
func Decide(v View) Plan {
	type member struct {
		*corev1.Pod
		fate  behavior
		order int32
	}
	var members []member
	lowest := int32(math.MaxInt32)
	for _, pod := range sorted(v.Pods) {
		f, order := v.podBehavior(pod)
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
			p.Terminating = append(p.Terminating, name)
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

// podBehavior returns the behavior and the order of a Pod.
func (v View) podBehavior(pod *corev1.Pod) (behavior, int32) {
	f, order := v.behaviorWhileRunning(pod)
	if v.Removed && (f == awaited || !pod.DeletionTimestamp.IsZero()) {
		return stays, 0
	}
	return f, order
}

// behaviorWhileRunning returns the behavior and the order of a Pod if its machine exists.
func (v View) behaviorWhileRunning(pod *corev1.Pod) (behavior, int32) {
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

// byLabel returns the behavior that the Pod's drain label requests, which takes precedence over rules. Case and
// dashes are ignored.
func byLabel(pod *corev1.Pod) (behavior, bool) {
	switch strings.ToLower(strings.ReplaceAll(pod.Labels[clusterv1.PodDrainLabel], "-", "")) {
	case "skip":
		return stays, true
	case "waitcompleted":
		return await(pod), true
	}
	return stays, false
}

func byRule(r Rule, pod *corev1.Pod) (behavior, int32) {
	switch r.Behavior {
	case clusterv1.MachineDrainRuleDrainBehaviorSkip:
		return stays, 0
	case clusterv1.MachineDrainRuleDrainBehaviorWaitCompleted:
		return await(pod), 0
	}
	return leaves, r.Order
}

// await returns the behavior of a Pod that must complete without eviction. A completed Pod stays.
func await(pod *corev1.Pod) behavior {
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

// Unreachable reports whether the control plane has lost contact with the Node's kubelet. The Machine controller does
// not wait for the volumes of such a Node.
func Unreachable(node *corev1.Node) bool {
	return slices.ContainsFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status == corev1.ConditionUnknown
	})
}
