package simulated

import (
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	infrav1 "github.com/slipwayhq/slipway/api/infrastructure/v1alpha1"
	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/simulated/store"
)

// controlPlaneFaults contains the faults of the control plane on a machine, parsed from the annotation
// [infrav1.ControlPlaneFaultsAnnotation]. SetFaults applies them.
type controlPlaneFaults struct {
	down, learner bool
	alarms, pods  []string
	delay         time.Duration
}

// parseFaults parses the annotation. An unknown fault is an error, because a test that relies on it would prove
// nothing. simulatedMachines.SetFaults calls it.
func parseFaults(text string) (controlPlaneFaults, error) {
	var w controlPlaneFaults
	for item := range strings.SplitSeq(text, ",") {
		name, value, _ := strings.Cut(strings.TrimSpace(item), "=")
		delay, err := time.ParseDuration(value)
		switch {
		case name == "":
		case name == "etcd-down":
			w.down = true
		case name == "etcd-learner":
			w.learner = true
		case name == "etcd-alarm" && (value == "NOSPACE" || value == "CORRUPT"):
			w.alarms = append(w.alarms, value)
		case name == "etcd-delay" && err == nil && delay >= 0:
			w.delay = delay
		case name == "pod-down" && slices.Contains(components[:], value):
			w.pods = append(w.pods, value)
		default:
			return w, fault.New(fault.Invalid, "FaultUnknown",
				"The annotation %s has %q: use etcd-down, etcd-learner, etcd-alarm=NOSPACE or CORRUPT, etcd-delay=TIME, or pod-down=COMPONENT", infrav1.ControlPlaneFaultsAnnotation, item)
		}
	}
	return w, nil
}

// member applies the faults to an etcd member. simulatedMachines.SetFaults calls it.
func (w controlPlaneFaults) member(m *store.EtcdMember) {
	m.Stopped, m.Learner, m.Alarms, m.Delay = w.down, w.learner, w.alarms, w.delay
}

// change applies the faults to the status of a static Pod and reports whether the status changed.
// simulatedMachines.SetFaults calls it for each static Pod.
func (w controlPlaneFaults) change(pod *corev1.Pod, component string, now metav1.Time) bool {
	down, ready := slices.Contains(w.pods, component) || component == "etcd" && w.down, corev1.ConditionTrue
	if down {
		ready = corev1.ConditionFalse
	}
	changed := false
	for i := range pod.Status.Conditions {
		c := &pod.Status.Conditions[i]
		if (c.Type == corev1.PodReady || c.Type == corev1.ContainersReady) && c.Status != ready {
			c.Status, c.LastTransitionTime, changed = ready, now, true
		}
	}
	for i := range pod.Status.ContainerStatuses {
		c := &pod.Status.ContainerStatuses[i]
		c.Ready = !down
		c.State = corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: now}}
		if down {
			c.State = corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{
				Reason: "CrashLoopBackOff", Message: "The annotation " + infrav1.ControlPlaneFaultsAnnotation + " makes the container fail",
			}}
		}
	}
	return changed
}
