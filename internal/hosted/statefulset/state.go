package statefulset

import (
	"encoding/json"
	"fmt"
	"net"
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/slipwayhq/slipway/internal/controlplane/processconfig"
	"github.com/slipwayhq/slipway/internal/hosted/backend"
	"github.com/slipwayhq/slipway/internal/redact"
)

// logBytes limits the log in the status, because users who can read the status may not be permitted to read
// Secrets.
const logBytes = 8 << 10

// planeObjects contains the objects of a control plane. Status computes its state from them in each reconciliation
// ([planeObjects.controlPlane]), without side effects. Missing objects are nil.
type planeObjects struct {
	set     *appsv1.StatefulSet
	pod     *corev1.Pod
	service *corev1.Service
	claim   *corev1.PersistentVolumeClaim
	// namespace and name of all objects.
	namespace, name string
	// serviceType is the type that the operator has configured.
	serviceType corev1.ServiceType
	// image is the image of this program, or empty if unknown. turn means that the control plane may be
	// restarted with it.
	image string
	turn  bool
}

// record returns the data record. The StatefulSet is written last and therefore takes precedence over the
// claim.
func (s planeObjects) record() processconfig.Record {
	var out processconfig.Record
	text := ""
	if s.claim != nil {
		text = s.claim.Annotations[recordAnnotation]
	}
	if s.set != nil {
		text = s.set.Annotations[recordAnnotation]
	}
	_ = json.Unmarshal([]byte(text), &out) // an invalid record counts as empty
	return out
}

// current reports whether the Pod has the configuration of the StatefulSet.
func (s planeObjects) current() bool {
	return s.set != nil && s.pod != nil && s.pod.Annotations[configAnnotation] == s.set.Annotations[configAnnotation] && s.pod.DeletionTimestamp.IsZero()
}

// container returns the status of the Pod's container.
func (s planeObjects) container() corev1.ContainerStatus {
	if s.pod != nil {
		for _, c := range s.pod.Status.ContainerStatuses {
			if c.Name == container {
				return c
			}
		}
	}
	return corev1.ContainerStatus{}
}

func (s planeObjects) hasClaim() bool { return s.claim != nil && s.claim.DeletionTimestamp.IsZero() }

// controlPlane returns the observed state of the control plane.
func (s planeObjects) controlPlane() backend.ControlPlane {
	c := s.container()
	out := backend.ControlPlane{
		Exists: s.set != nil || s.claim != nil, Reserved: s.service != nil || s.pod != nil,
		Data: s.record().Data(s.hasClaim()), Restarts: int(c.RestartCount),
	}
	if s.set != nil {
		out.Config = s.set.Annotations[configAnnotation]
	}
	if s.service != nil {
		out.Endpoint, out.EndpointProblem = endpointOf(s.service)
		if s.service.Spec.Type != s.serviceType && out.EndpointProblem != "" {
			out.EndpointProblem = "" // Reserve replaces it with a Service of another type
		}
		if ip := s.service.Spec.ClusterIP; net.ParseIP(ip) != nil {
			out.Local = net.JoinHostPort(ip, strconv.Itoa(servicePort))
		}
	}
	if c.State.Running != nil {
		out.Running, out.Since, out.Version = true, c.State.Running.StartedAt.Time, s.pod.Annotations[versionAnnotation]
		out.Ready = s.current() && isTrue(s.pod, corev1.PodReady)
		out.EtcdReady = out.Ready
	}
	if ended := latestTermination(c.State.Terminated, c.LastTerminationState.Terminated); ended != nil {
		out.LastExit, out.Log = exit(ended), redact.Tail(strings.TrimSpace(ended.Message), logBytes)
	}
	out.Problem, out.Pending = s.problem(), s.pending(out)
	return out
}

// latestTermination returns the most recent termination, or nil.
func latestTermination(now, before *corev1.ContainerStateTerminated) *corev1.ContainerStateTerminated {
	if now != nil {
		return now
	}
	return before
}

// exit describes the termination of a container.
func exit(t *corev1.ContainerStateTerminated) string {
	switch {
	case t.Reason == "OOMKilled":
		return "it was killed: out of memory"
	case t.Signal != 0:
		return fmt.Sprintf("signal %d", t.Signal)
	}
	return fmt.Sprintf("exit code %d", t.ExitCode)
}

// problem returns the reason why the control plane does not run or is not ready. It is empty if the control
// plane is starting or has exited by itself.
func (s planeObjects) problem() string {
	running := s.container().State.Running != nil
	switch {
	case s.set == nil:
		return ""
	case s.claim == nil && !running:
		return fmt.Sprintf("PersistentVolumeClaim %s/%s with the data of the control plane is gone: restore it under this name from a snapshot of the volume, or delete the cluster, because Slipway does not start it without data",
			s.namespace, s.name)
	case s.claim != nil && !s.hasClaim() && !running:
		return fmt.Sprintf("PersistentVolumeClaim %s/%s with the data of the control plane is being deleted", s.namespace, s.name)
	case s.pod == nil:
		return fmt.Sprintf("Waiting for StatefulSet %s/%s to create its Pod; its events contain the reason", s.namespace, s.name)
	case !s.pod.DeletionTimestamp.IsZero():
		return fmt.Sprintf("Waiting for Pod %s/%s to end; if its Node %s is lost, delete the Node", s.namespace, s.pod.Name, s.pod.Spec.NodeName)
	case !s.current() && running:
		return fmt.Sprintf("Waiting for Pod %s/%s to be replaced by one of the new configuration", s.namespace, s.pod.Name)
	}
	return s.podProblem()
}

// podProblem returns the reason why the Pod does not run, as far as the Pod reports it.
func (s planeObjects) podProblem() string {
	pod := s.namespace + "/" + s.pod.Name
	for _, c := range s.pod.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse {
			return fmt.Sprintf("Pod %s is not scheduled: %s%s", pod, strings.TrimSuffix(c.Message, "."), s.claimProblem())
		}
	}
	switch w := s.container().State.Waiting; {
	case w == nil, w.Reason == "ContainerCreating", w.Reason == "PodInitializing", w.Reason == "CrashLoopBackOff":
	case strings.Contains(w.Reason, "Image"): // the message of the registry differs between attempts
		return fmt.Sprintf("Image %s of Pod %s cannot be pulled, retrying: the events of the Pod contain the reason", s.container().Image, pod)
	case w.Message != "":
		return fmt.Sprintf("Pod %s waits: %s", pod, w.Message)
	}
	return ""
}

func (s planeObjects) claimProblem() string {
	if s.claim == nil || s.claim.Status.Phase == corev1.ClaimBound {
		return ""
	}
	class := "no storage class: the management cluster has no default one, or the operator chooses one with --" + ClassFlag
	if c := s.claim.Spec.StorageClassName; c != nil && *c != "" {
		class = "storage class " + *c
	}
	return fmt.Sprintf("; PersistentVolumeClaim %s/%s is not bound to a volume and has %s", s.namespace, s.name, class)
}

// pending describes the change that Start would make to a control plane with the current configuration.
func (s planeObjects) pending(have backend.ControlPlane) string {
	switch known := s.record(); {
	case s.set == nil:
		return ""
	case have.Ready && have.Version != "" && known.Version != have.Version:
		return "record that Kubernetes " + have.Version + " wrote the data of the control plane"
	case s.hasClaim() && s.image != "" && s.turn && imageOf(s.set) != s.image:
		return "restart the control plane with image " + s.image + ", from " + imageOf(s.set)
	}
	return ""
}

// imageOf returns the image of the control plane in a StatefulSet.
func imageOf(set *appsv1.StatefulSet) string {
	for _, c := range set.Spec.Template.Spec.Containers {
		if c.Name == container {
			return c.Image
		}
	}
	return ""
}

// nextToUpdate returns the name of the StatefulSet that is updated to the image next. It is empty if all have the image
// or if one with the image is not ready. StatefulSets are updated one after the other, so that a broken image affects
// only the first. The state of each control plane is compared with it, and [controlPlanes.notifyOld] notifies the next
// one after a change.
func nextToUpdate(sets []appsv1.StatefulSet, image string) string {
	first := ""
	for i := range sets {
		set := &sets[i]
		switch {
		case nameOf(set) == "":
		case imageOf(set) != image:
			if first == "" || set.Name < first {
				first = set.Name
			}
		case set.Status.ObservedGeneration != set.Generation || set.Status.UpdatedReplicas == 0 || set.Status.ReadyReplicas == 0 || set.Status.CurrentRevision != set.Status.UpdateRevision:
			return ""
		}
	}
	return first
}

func isTrue(pod *corev1.Pod, t corev1.PodConditionType) bool {
	for _, c := range pod.Status.Conditions {
		if c.Type == t {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}
