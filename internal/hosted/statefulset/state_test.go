package statefulset

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/slipwayhq/slipway/internal/controlplane/processconfig"
	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/hosted/backend"
)

var started = metav1.NewTime(time.Date(2026, 11, 26, 1, 0, 0, 0, time.UTC))

func config() processconfig.Config {
	return processconfig.Config{
		Cluster: "demo", Version: "v1.36.3", Endpoint: "203.0.113.7:30001", Everywhere: true, ServiceCIDRs: []string{"10.96.0.0/16"}, PodCIDRs: []string{"10.244.0.0/16"},
	}
}

// settled is a control plane that runs and is ready.
func settled(changes ...func(*planeObjects)) planeObjects {
	o := desiredPlane{name: "team-a.demo", namespace: "home", config: config(), record: processconfig.Record{Version: "v1.36.3"}, port: 30001, podSettings: managerPodSettings{image: "slipway:v1"}}
	set := o.statefulSet()
	service := newService(o, corev1.ServiceTypeNodePort, "203.0.113.7", 30001)
	service.Spec.ClusterIP = "10.0.0.9"
	pod := &corev1.Pod{ObjectMeta: set.Spec.Template.ObjectMeta, Spec: set.Spec.Template.Spec}
	pod.Namespace, pod.Name, pod.Spec.NodeName = "home", set.Name+"-0", "n1"
	pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: container, Image: "slipway:v1", State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: started}}}}
	claim := o.claim(Volume{})
	claim.Status.Phase = corev1.ClaimBound
	s := planeObjects{set: set, pod: pod, service: service, claim: claim, namespace: "home", name: set.Name, serviceType: corev1.ServiceTypeNodePort, image: "slipway:v1"}
	for _, change := range changes {
		change(&s)
	}
	return s
}

func (s *planeObjects) waits(reason, message string) {
	s.pod.Status.Conditions = nil
	s.pod.Status.ContainerStatuses[0].State = corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message}}
}

func TestControlPlane(t *testing.T) {
	ready := func(changes ...func(*backend.ControlPlane)) backend.ControlPlane {
		out := backend.ControlPlane{
			Exists: true, Reserved: true, Running: true, Ready: true, EtcdReady: true, Endpoint: clusterv1.APIEndpoint{Host: "203.0.113.7", Port: 30001}, Local: "10.0.0.9:6443",
			Since: started.Time, Version: "v1.36.3", Data: processconfig.Data{Exists: true, Version: "v1.36.3"}, Config: config().Hash(),
		}
		for _, change := range changes {
			change(&out)
		}
		return out
	}
	ended := func(problem string) func(*backend.ControlPlane) {
		return func(p *backend.ControlPlane) {
			p.Running, p.Ready, p.EtcdReady, p.Since, p.Version, p.Problem = false, false, false, time.Time{}, "", problem
		}
	}
	name := settled().name
	tests := map[string]struct {
		why  string
		s    planeObjects
		want backend.ControlPlane
	}{
		"ready":   {"", settled(), ready()},
		"nothing": {"it was never started", planeObjects{}, backend.ControlPlane{}},
		"reserved": {"no authority is there yet", settled(func(s *planeObjects) { s.set, s.pod, s.claim = nil, nil, nil }),
			backend.ControlPlane{Reserved: true, Endpoint: ready().Endpoint, Local: "10.0.0.9:6443"}},
		"waits for a load balancer": {"", settled(func(s *planeObjects) {
			s.set, s.pod, s.claim, s.serviceType = nil, nil, nil, corev1.ServiceTypeLoadBalancer
			s.service.Spec.Type = corev1.ServiceTypeLoadBalancer
		}), backend.ControlPlane{Reserved: true, Local: "10.0.0.9:6443", EndpointProblem: "Waiting for a load balancer to get an address for Service home/" + name +
			"; if the management cluster has no load balancers, start the manager with --control-plane-service-type=NodePort"}},
		"the operator chose ports of nodes": {"the Service is reserved again", settled(func(s *planeObjects) {
			s.set, s.pod, s.claim, s.service.Spec.Type = nil, nil, nil, corev1.ServiceTypeLoadBalancer
		}), backend.ControlPlane{Reserved: true, Local: "10.0.0.9:6443"}},
		"an address": {"of a load balancer", settled(func(s *planeObjects) {
			s.service.Spec.Type = corev1.ServiceTypeLoadBalancer
			s.service.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{{Hostname: "lb.example"}, {IP: "198.51.100.3"}}
		}), ready(func(p *backend.ControlPlane) { p.Endpoint = clusterv1.APIEndpoint{Host: "198.51.100.3", Port: 6443} })},
		"killed before the StatefulSet": {"the claim alone is there", settled(func(s *planeObjects) { s.set, s.pod = nil, nil; s.claim.Annotations[recordAnnotation] = "" }),
			ready(ended(""), func(p *backend.ControlPlane) { p.Config, p.Data.Version = "", "" })},
		"StatefulSet deleted": {"the claim remembers the data", settled(func(s *planeObjects) {
			s.set, s.pod = nil, nil
			s.claim.Annotations[recordAnnotation] = `{"version":"v1.36.3"}`
		}), ready(ended(""), func(p *backend.ControlPlane) { p.Config = "" })},
		"claim gone": {"the StatefulSet remembers the data", settled(func(s *planeObjects) { s.claim = nil; s.waits("", "") }),
			ready(ended("PersistentVolumeClaim home/"+name+" with the data of the control plane is gone: restore it under this name from a snapshot of the volume, or delete the cluster, because Slipway does not start it without data"),
				func(p *backend.ControlPlane) { p.Data.Exists = false })},
		"claim is deleted while the Pod runs": {"it is not restarted", settled(func(s *planeObjects) { s.claim.DeletionTimestamp = &started }),
			ready(func(p *backend.ControlPlane) { p.Data.Exists = false })},
		"no Pod": {"a quota or a node that is lost", settled(func(s *planeObjects) { s.pod = nil }),
			ready(ended("Waiting for StatefulSet home/" + name + " to create its Pod; its events contain the reason"))},
		"not scheduled": {"", settled(func(s *planeObjects) {
			s.waits("", "")
			s.pod.Status.ContainerStatuses, s.claim.Status.Phase = nil, corev1.ClaimPending
			s.pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Message: "0/1 nodes are available: unbound claims."}}
		}), ready(ended("Pod home/" + name + "-0 is not scheduled: 0/1 nodes are available: unbound claims; PersistentVolumeClaim home/" + name +
			" is not bound to a volume and has no storage class: the management cluster has no default one, or the operator chooses one with --control-plane-storage-class"))},
		"image": {"what the registry answers changes", settled(func(s *planeObjects) { s.waits("ErrImagePull", "401") }),
			ready(ended("Image slipway:v1 of Pod home/" + name + "-0 cannot be pulled, retrying: the events of the Pod contain the reason"))},
		"configuration of the container": {"", settled(func(s *planeObjects) { s.waits("CreateContainerConfigError", "secret not found") }),
			ready(ended("Pod home/" + name + "-0 waits: secret not found"))},
		"starting": {"", settled(func(s *planeObjects) { s.waits("ContainerCreating", "") }), ready(ended(""))},
		"died": {"the condition says how", settled(func(s *planeObjects) {
			s.waits("CrashLoopBackOff", "back-off 5m0s")
			s.pod.Status.ContainerStatuses[0].RestartCount = 3
			s.pod.Status.ContainerStatuses[0].LastTerminationState.Terminated = &corev1.ContainerStateTerminated{ExitCode: 1, Message: "etcd: no space\n"}
		}), ready(ended(""), func(p *backend.ControlPlane) { p.Restarts, p.LastExit, p.Log = 3, "exit code 1", "etcd: no space" })},
		"out of memory": {"", settled(func(s *planeObjects) {
			s.waits("CrashLoopBackOff", "")
			s.pod.Status.ContainerStatuses[0].LastTerminationState.Terminated = &corev1.ContainerStateTerminated{ExitCode: 137, Reason: "OOMKilled"}
		}), ready(ended(""), func(p *backend.ControlPlane) { p.LastExit = "it was killed: out of memory" })},
		"another configuration": {"the Pod of the old one still runs", settled(func(s *planeObjects) { s.pod.Annotations[configAnnotation] = "old" }),
			ready(func(p *backend.ControlPlane) {
				p.Ready, p.EtcdReady, p.Problem = false, false, "Waiting for Pod home/"+name+"-0 to be replaced by one of the new configuration"
			})},
		"node lost": {"a StatefulSet starts no second Pod", settled(func(s *planeObjects) { s.pod.DeletionTimestamp = &started }),
			ready(func(p *backend.ControlPlane) {
				p.Ready, p.EtcdReady, p.Problem = false, false, "Waiting for Pod home/"+name+"-0 to end; if its Node n1 is lost, delete the Node"
			})},
		"ready for the first time": {"it is never started without its data from now on", settled(func(s *planeObjects) { s.set.Annotations[recordAnnotation] = "{}" }),
			ready(func(p *backend.ControlPlane) {
				p.Data.Version, p.Pending = "", "record that Kubernetes v1.36.3 wrote the data of the control plane"
			})},
		"another image": {"it is its turn", settled(func(s *planeObjects) { s.image, s.turn = "slipway:v2", true }),
			ready(func(p *backend.ControlPlane) {
				p.Pending = "restart the control plane with image slipway:v2, from slipway:v1"
			})},
		"another image later": {"others are first", settled(func(s *planeObjects) { s.image = "slipway:v2" }), ready()},
	}
	for title, test := range tests {
		if diff := cmp.Diff(test.want, test.s.controlPlane()); diff != "" {
			t.Errorf("%s (%s):\n%s", title, test.why, diff)
		}
	}
}

// A StatefulSet's name has a limit, a Service's has a form; whoever writes an object in the namespace does not gain a control plane.
func TestNames(t *testing.T) {
	seen := map[string]string{}
	for _, name := range []string{"a.b", "1.b", "a-b.c", "a.b-c", strings.Repeat("n", 63) + "." + strings.Repeat("p", 253), strings.Repeat("n", 63) + "." + strings.Repeat("p", 252), "ns.p.q"} {
		got := objectName(name)
		if len(got) > 52 || strings.ContainsAny(got, "._") || !strings.HasPrefix(got, "cp-") {
			t.Errorf("%s: %s", name, got)
		}
		if other, taken := seen[got]; taken {
			t.Errorf("%s and %s are both %s", name, other, got)
		}
		seen[got] = name
	}
	tests := map[string]struct {
		why    string
		change func(*appsv1.StatefulSet)
		want   string
	}{
		"its own":    {"", func(*appsv1.StatefulSet) {}, "team-a.demo"},
		"other name": {"it claims to be another one's", func(s *appsv1.StatefulSet) { s.Annotations[nameAnnotation] = "team-b.demo" }, ""},
		"no label":   {"", func(s *appsv1.StatefulSet) { delete(s.Labels, label) }, ""},
		"the Pod":    {"", func(s *appsv1.StatefulSet) { s.Name += "-0" }, "team-a.demo"},
	}
	for title, test := range tests {
		set := settled().set
		test.change(set)
		if got := nameOf(set); got != test.want {
			t.Errorf("%s (%s): %q", title, test.why, got)
		}
	}
}

// One control plane restarts with another image after the other.
func TestFirstOld(t *testing.T) {
	set := func(name, image string, ready int32) appsv1.StatefulSet {
		out := *desiredPlane{name: name, podSettings: managerPodSettings{image: image}, config: config()}.statefulSet()
		out.Status = appsv1.StatefulSetStatus{ReadyReplicas: ready, UpdatedReplicas: 1}
		return out
	}
	rolling := set("ns.a", "new", 1)
	rolling.Generation = 2
	tests := map[string]struct {
		why  string
		sets []appsv1.StatefulSet
		want string
	}{
		"all new":      {"", []appsv1.StatefulSet{set("ns.a", "new", 1), set("ns.b", "new", 1)}, ""},
		"all old":      {"", []appsv1.StatefulSet{set("ns.b", "old", 1), set("ns.a", "old", 1)}, objectName("ns.a")},
		"next":         {"", []appsv1.StatefulSet{set("ns.a", "new", 1), set("ns.b", "old", 0)}, objectName("ns.b")},
		"not ready":    {"an image that does not work stops here", []appsv1.StatefulSet{set("ns.a", "new", 0), set("ns.b", "old", 1)}, ""},
		"just changed": {"the status is of the Pod before", []appsv1.StatefulSet{rolling, set("ns.b", "old", 1)}, ""},
		"of others":    {"", []appsv1.StatefulSet{{ObjectMeta: metav1.ObjectMeta{Name: "a"}}, set("ns.b", "old", 1)}, objectName("ns.b")},
	}
	for title, test := range tests {
		if got := nextToUpdate(test.sets, "new"); got != test.want {
			t.Errorf("%s (%s): %q", title, test.why, got)
		}
	}
}

func TestRecordOf(t *testing.T) {
	tests := map[string]struct {
		why    string
		change func(*planeObjects)
		keys   string
		want   processconfig.Record
		reason string
	}{
		"first start":   {"", func(s *planeObjects) { s.set, s.pod, s.claim = nil, nil, nil }, "", processconfig.Record{}, ""},
		"with keys":     {"something may be encrypted from now on", func(s *planeObjects) { s.set, s.pod, s.claim = nil, nil, nil }, "k", processconfig.Record{EncryptionKeys: "k"}, ""},
		"ready":         {"", func(s *planeObjects) { s.set.Annotations[recordAnnotation] = "{}" }, "", processconfig.Record{Version: "v1.36.3"}, ""},
		"claim gone":    {"it would start empty", func(s *planeObjects) { s.claim, s.pod = nil, nil }, "", processconfig.Record{Version: "v1.36.3"}, processconfig.ReasonDataMissing},
		"another claim": {"a person restored it", func(s *planeObjects) { s.claim.Annotations[recordAnnotation] = "" }, "", processconfig.Record{Version: "v1.36.3"}, ""},
		"other keys": {"", func(s *planeObjects) {
			s.set.Annotations[recordAnnotation] = `{"version":"v1.36.3","encryptionKeys":"k"}`
		}, "other", processconfig.Record{Version: "v1.36.3", EncryptionKeys: "k"}, processconfig.ReasonEncryptionKeys},
	}
	for title, test := range tests {
		s, c := settled(test.change), config()
		c.EncryptionKeys = test.keys
		got, err := recordOf(s, s.controlPlane(), c)
		if diff := cmp.Diff(test.want, got); diff != "" || reasonOf(err) != test.reason {
			t.Errorf("%s (%s): %v\n%s", title, test.why, err, diff)
		}
	}
}

func reasonOf(err error) string {
	if f := fault.As(err); f != nil {
		return f.Reason
	}
	return ""
}
