package hosted

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache/informertest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	hostedv1 "github.com/slipwayhq/slipway/api/controlplane/v1alpha1"
	"github.com/slipwayhq/slipway/internal/condition"
	"github.com/slipwayhq/slipway/internal/controlplane/processconfig"
	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/hosted/backend"
	"github.com/slipwayhq/slipway/internal/hosted/statefulset"
	"github.com/slipwayhq/slipway/internal/policy"
	"github.com/slipwayhq/slipway/internal/reconciler"
)

// inPod is a control plane that has all it needs and runs in a Pod.
func inPod(t *testing.T, changes ...func(*snapshot)) snapshot {
	t.Helper()
	s := running(t, func(s *snapshot) {
		s.Plane.Spec.ControlPlaneEndpoint, s.Cluster.Spec.ControlPlaneEndpoint = s.Cluster.Spec.ControlPlaneEndpoint, clusterv1.APIEndpoint{}
	})
	s.Gateway = hostGateway{}
	s.ReservedPorts = []uint16{6443} // of the management cluster: not of the Pod's network
	s.Capabilities = podTerms(t, s.Policy)
	s.Process.Reserved, s.Process.Endpoint, s.Process.Local = true, s.Plane.Spec.ControlPlaneEndpoint, "10.0.0.9:6443"
	s.Process.Config = configOf(s).Hash()
	s.Process.Data = processconfig.Data{Exists: true, Version: version}
	for _, change := range changes {
		change(&s)
	}
	return s
}

// podTerms are the capabilities of control planes that run in Pods.
func podTerms(t *testing.T, allowed policy.Configuration) backend.Capabilities {
	t.Helper()
	b, err := statefulset.New(t.Context(), emptyCluster{}, statefulset.Settings{Version: version})
	must(t, err)
	return b.ControlPlanes.Capabilities(allowed)
}

// emptyCluster is a connection to a management cluster without objects.
type emptyCluster struct{ statefulset.Connection }

func (emptyCluster) GetClient() client.Client { return fake.NewClientBuilder().Build() }

func (emptyCluster) GetAPIReader() client.Reader { return fake.NewClientBuilder().Build() }

func (emptyCluster) GetCache() cache.Cache { return &informertest.FakeInformers{} }

// fresh is one of which there is nothing yet.
func fresh(s *snapshot) {
	s.Plane.Spec.ControlPlaneEndpoint, s.Process = clusterv1.APIEndpoint{}, backend.ControlPlane{}
	s.Kubeconfig.Server = ""
}

// reserved has an endpoint and was not started.
func reserved(s *snapshot) {
	s.Process = backend.ControlPlane{Reserved: true, Endpoint: s.Plane.Spec.ControlPlaneEndpoint, Local: s.Process.Local}
}

func TestDecideInPods(t *testing.T) {
	many := func(s *snapshot) {
		fresh(s)
		s.PlaneCount, s.Capabilities.Maximum = backend.PlaneCount{Known: true, Own: 30, All: 30}, policy.Default().Maxima.ControlPlanes
	}
	room := func(s *snapshot) { s.PlaneCount = backend.PlaneCount{Known: true} }
	cases := map[string]struct {
		reason string
		s      snapshot
		want   []string
	}{
		"settled":       {"nothing to do", inPod(t), nil},
		"first":         {"the endpoint comes first", inPod(t, fresh, room), []string{"do: choose the control plane endpoint: the infrastructure provides none for such a control plane", untilInfrastructure}},
		"too many":      {"a load balancer costs something", inPod(t, many), []string{"wait: Namespace ns may have 30 at most: delete some, or ask the operator to raise maxima.controlPlanes.namespace in the configuration file (--config of slipway up or slipway manager)", untilInfrastructure}},
		"load balancer": {"an event tells", inPod(t, fresh, func(s *snapshot) { s.Process.Reserved, s.Process.EndpointProblem = true, "Waiting for a load balancer" }), []string{"wait: Waiting for a load balancer", untilInfrastructure}},
		"start":         {"no address of a host is looked for", inPod(t, reserved), []string{"do: start the control plane at v1.36.3: it has not run yet", "wait: The API server is starting"}},
		"endpoint of a user": {"it leads elsewhere", inPod(t, reserved, func(s *snapshot) { s.Process.Endpoint.Port++ }),
			[]string{"wait: Control plane endpoint 172.31.0.1:6443 is not allowed: the Service of the control plane is reached at 172.31.0.1:6444; create the cluster without an endpoint"}},
		"Service gone":     {"the objects of a backup, most often", inPod(t, room, func(s *snapshot) { s.Process = backend.ControlPlane{} }), []string{"do: choose the control plane endpoint: the infrastructure provides none for such a control plane"}},
		"something missed": {"", inPod(t, func(s *snapshot) { s.Process.Pending = "remember it" }), []string{"do: remember it"}},
		"claim gone": {"never an empty one in the place of a full one", inPod(t, initialized, reserved),
			[]string{"wait: The control plane was initialized, but its data is not in this management cluster, which has no PersistentVolumeClaim of it; restore it from a backup, or delete the cluster, because Slipway does not start it without data"}},
		"claim gone, StatefulSet not": {"", inPod(t, initialized, func(s *snapshot) {
			s.Process.Running, s.Process.Ready, s.Process.Data.Exists, s.Process.Problem = false, false, false, "The claim is gone"
		}), []string{"wait: The claim is gone"}},
		"unscheduled": {"what the Pod waits for is said", inPod(t, func(s *snapshot) {
			s.Process.Running, s.Process.Ready, s.Process.Problem = false, false, "Pod p is not scheduled"
		}),
			[]string{"wait: Pod p is not scheduled"}},
		"another version": {"", inPod(t, func(s *snapshot) { s.Plane.Spec.Version = "v1.35.1" }),
			[]string{"wait: Kubernetes v1.35.1 is not in the image of the manager, which has v1.36.3; set spec.version to it, or ask the operator to install a release of slipway with v1.35.1"}},
		"deleted": {"", inPod(t, deleted, reserved), []string{"do: stop the control plane and delete its data: it is being deleted", "wait: The control plane is being stopped and its data is being deleted"}},
		"gone":    {"", inPod(t, deleted, func(s *snapshot) { s.Process = backend.ControlPlane{} }), nil},
	}
	for name, c := range cases {
		if diff := cmp.Diff(c.want, texts(decide(c.s))); diff != "" {
			t.Errorf("%s (%s):\n%s", name, c.reason, diff)
		}
	}
	counted := decide(inPod(t, fresh, func(s *snapshot) {
		s.Policy = policy.Default()
		s.Capabilities = podTerms(t, s.Policy)
	}))
	if len(counted.Reads) != 1 || len(counted.Actions) != 0 {
		t.Errorf("before an endpoint is chosen control planes are counted: %+v", counted)
	}
}

const untilInfrastructure = "wait: Waiting for the infrastructure of Cluster c to be provisioned and its control plane endpoint to be set"

func initialized(s *snapshot) {
	s.Plane.Annotations = map[string]string{hostedv1.InitializedAnnotation: "true"}
}

func deleted(s *snapshot) {
	at := s.Plane.CreationTimestamp
	at.Time = now
	s.Plane.DeletionTimestamp = &at
}

// What a Pod waits for is in the conditions.
func TestStatusInPods(t *testing.T) {
	s := inPod(t, func(s *snapshot) {
		s.Process.Running, s.Process.Ready, s.Process.EtcdReady, s.Process.Problem = false, false, false, "Pod p is not scheduled"
	})
	status := report(s, decide(s), reconciler.Outcome{}).Status.(hostedv1.HostedControlPlaneStatus)
	for _, c := range []string{hostedv1.ProcessRunningCondition, hostedv1.AvailableCondition} {
		if got := condition.Set(status.Conditions).Get(c); got == nil || got.Message != "Pod p is not scheduled" {
			t.Errorf("%s: %+v", c, got)
		}
	}
}

// What the management cluster refuses is in the conditions, and not that something is starting.
func TestRefusedStart(t *testing.T) {
	s := inPod(t, reserved)
	p := decide(s)
	out := reconciler.Outcome{Failed: p.Actions[0], Err: fault.New(fault.Transient, "Refused", "The management cluster refuses it, retrying: exceeded quota")}
	status := report(s, p, out).Status.(hostedv1.HostedControlPlaneStatus)
	for _, c := range []string{hostedv1.ProcessRunningCondition, hostedv1.AvailableCondition} {
		if got := condition.Set(status.Conditions).Get(c); got == nil || got.Message != "The management cluster refuses it, retrying: exceeded quota" {
			t.Errorf("%s: %+v", c, got)
		}
	}
}

// A change that waits, because the claim is being deleted, is said while the old configuration runs.
func TestClaimDeletedWhileRunning(t *testing.T) {
	s := inPod(t, func(s *snapshot) { s.Process.Config, s.Process.Data.Exists = "old", false })
	p := decide(s)
	if len(p.Actions) != 0 {
		t.Errorf("%v", p.Actions)
	}
	status := report(s, p, reconciler.Outcome{}).Status.(hostedv1.HostedControlPlaneStatus)
	if got := condition.Set(status.Conditions).Get("RollingOut"); got == nil || got.Reason != processconfig.ReasonDataMissing {
		t.Errorf("%+v", got)
	}
}

// The API server in a Pod is reached through its Service, by a name that its certificate has.
func TestAccessInPods(t *testing.T) {
	s := inPod(t)
	s.Now = time.Now()
	config, err := access(s)
	if err != nil || config.Host != "https://10.0.0.9:6443" || config.ServerName != "kubernetes" || len(config.CAData) == 0 {
		t.Errorf("%v: %+v", err, config)
	}
	s.Capabilities = termsOf(s)
	if _, err := access(s); err == nil {
		t.Error("a process of this host is reached elsewhere")
	}
}
