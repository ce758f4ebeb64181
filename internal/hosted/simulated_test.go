package hosted

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"k8s.io/utils/ptr"

	hostedv1 "github.com/slipwayhq/slipway/api/controlplane/v1alpha1"
	"github.com/slipwayhq/slipway/internal/condition"
	"github.com/slipwayhq/slipway/internal/hosted/backend"
	hostedsimulated "github.com/slipwayhq/slipway/internal/hosted/simulated"
	"github.com/slipwayhq/slipway/internal/kube"
	"github.com/slipwayhq/slipway/internal/policy"
	"github.com/slipwayhq/slipway/internal/reconciler"
	"github.com/slipwayhq/slipway/internal/simulated"
	"github.com/slipwayhq/slipway/test/testkit"
)

func simulatedPlane() *hostedv1.HostedControlPlane {
	p := plane()
	p.Spec.Version = "v1.30.0" // not supported, which does not matter
	p.Spec.Backend.Simulated = &hostedv1.SimulatedBackend{}
	return p
}

// simulatedSnapshot is a simulated control plane that has all it needs.
func simulatedSnapshot(t *testing.T, changes ...func(*snapshot)) snapshot {
	t.Helper()
	s := running(t, elsewhere("127.0.0.1", 12345))
	s.Plane = simulatedPlane()
	s.Capabilities = termsOf(s)
	s.Secrets = map[secretPurpose]*corev1.Secret{purposeCA: s.Secrets[purposeCA], purposeKubeconfig: s.Secrets[purposeKubeconfig]}
	s.Process = backend.ControlPlane{Exists: true, Running: true, Ready: true, EtcdReady: true, Version: "v1.30.0", Config: configOf(s).Hash()}
	for _, change := range changes {
		change(&s)
	}
	s.Capabilities = termsOf(s)
	return s
}

// Simulated control planes are of any version with nothing installed, and go from one to the next.
func TestSimulatedVersions(t *testing.T) { // CP-04
	for _, v := range []string{"v1.33.6", "v1.34.1", "v1.35.4", "v1.36.3", "v1.37.2"} {
		s := simulatedSnapshot(t, func(s *snapshot) { s.Plane.Spec.Version = v })
		if run, included := versionToRun(s); run != v || !included {
			t.Errorf("%s: it would run %s, %v", v, run, included)
		}
		p := decide(s)
		if len(p.Actions) != 1 || p.Actions[0].String() != "start the control plane at "+v+": it runs v1.30.0" {
			t.Errorf("%s: %v", v, p.Actions)
		}
	}
}

func TestDecideSimulated(t *testing.T) {
	yes := true
	cases := map[string]struct {
		reason string
		s      snapshot
		want   []string
	}{
		"on all networks": {"H6: it is for this host alone", simulatedSnapshot(t, elsewhere("0.0.0.0", 12345)),
			[]string{"wait: Control plane endpoint 0.0.0.0:12345 is not allowed: a simulated control plane listens at 127.0.0.1, at a port that it chooses itself; create the cluster without an endpoint"}},
		"another port": {"something else listens there, or is to", simulatedSnapshot(t, elsewhere("127.0.0.1", 22)),
			[]string{"wait: Control plane endpoint 127.0.0.1:22 is not allowed: a simulated control plane listens at 127.0.0.1, at a port that it chooses itself; create the cluster without an endpoint"}},
		"port of the management cluster": {"", simulatedSnapshot(t, elsewhere("127.0.0.1", 12346)),
			[]string{"wait: Control plane endpoint 127.0.0.1:12346 is not allowed: port 12346 is used by the management cluster; use another"}},
		"off": {"the operator has switched simulation off", simulatedSnapshot(t, func(s *snapshot) {
			s.Process, s.Policy.Providers.Disabled = backend.ControlPlane{}, []policy.Provider{"simulated"}
		}), []string{"wait: The simulated backend is disabled: choose another one, or ask the operator to remove simulated from providers.disabled in the configuration file (--config of slipway up or slipway manager)"}},
		"settled": {"no add-ons, any version", simulatedSnapshot(t), nil},
		"first": {"CP-02: it chooses where it listens, and waits for nobody to make its authority", simulatedSnapshot(t, func(s *snapshot) {
			s.Secrets, s.Process, s.Cluster.Spec.ControlPlaneEndpoint = nil, backend.ControlPlane{}, clusterv1.APIEndpoint{}
			s.Cluster.Status.Initialization.InfrastructureProvisioned = nil
		}), []string{"do: choose the control plane endpoint: the infrastructure provides none for such a control plane",
			"do: create Secret c-ca: it does not exist yet",
			"wait: Waiting for the infrastructure of Cluster c to be provisioned and its control plane endpoint to be set"}},
		"start": {"it answers at once, so nothing is waited for", simulatedSnapshot(t, func(s *snapshot) { s.Process = backend.ControlPlane{} }),
			[]string{"do: start the control plane at v1.30.0: it has not run yet"}},
		"restarted": {"", simulatedSnapshot(t, func(s *snapshot) { s.Process = backend.ControlPlane{Exists: true} }),
			[]string{"do: start the control plane at v1.30.0: slipway was restarted; it continues with its stored state"}},
		"state lost": {"H9: it is said that nothing is left", simulatedSnapshot(t, func(s *snapshot) {
			s.Process, s.Plane.Status.Initialization.ControlPlaneInitialized = backend.ControlPlane{}, &yes
		}), []string{"do: start the control plane at v1.30.0: its data is not on this host; it starts empty, and simulated machines create their Nodes again"}},
		"state lost, restored without status": {"H9", simulatedSnapshot(t, func(s *snapshot) {
			s.Process, s.Plane.Annotations = backend.ControlPlane{}, map[string]string{hostedv1.InitializedAnnotation: "true"}
		}), []string{"do: start the control plane at v1.30.0: its data is not on this host; it starts empty, and simulated machines create their Nodes again"}},
		"to be changed": {"its backend says what", simulatedSnapshot(t, func(s *snapshot) { s.Process.Pending = "make the API server slower: the annotations request it" }),
			[]string{"do: make the API server slower: the annotations request it"}},
		"unclear": {"it is said, by the error of the action", simulatedSnapshot(t, func(s *snapshot) { s.Process.InvalidRequest = "report the invalid annotation" }),
			[]string{"do: report the invalid annotation"}},
		"down": {"it is said why", simulatedSnapshot(t, func(s *snapshot) {
			s.Process.Ready, s.Process.Problem = false, "The API server does not respond, because an annotation makes it unreachable"
		}), []string{"wait: The API server does not respond, because an annotation makes it unreachable"}},
		"deleting": {"", simulatedSnapshot(t, func(s *snapshot) { s.Plane.DeletionTimestamp = &metav1.Time{Time: now} }),
			[]string{"do: stop the control plane and delete its data: it is being deleted", "wait: The control plane is being stopped and its data is being deleted"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if d := cmp.Diff(tc.want, texts(decide(tc.s))); d != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, d)
			}
		})
	}
}

// What was made wrong with a control plane is seen at once: no event tells of an API server that answers with errors.
func TestChangeIsSeen(t *testing.T) {
	if p := decide(simulatedSnapshot(t, func(s *snapshot) { s.Process.Pending = "answer with errors" })); p.Recheck == 0 || p.Recheck > time.Second {
		t.Errorf("looked at again after %s", p.Recheck)
	}
	if p := decide(simulatedSnapshot(t, func(s *snapshot) { s.Process.InvalidRequest = "say what is wrong" })); p.Recheck != 0 && p.Recheck < time.Minute {
		t.Errorf("what only a person can change is looked at again after %s", p.Recheck)
	}
}

func TestReportSimulated(t *testing.T) { // CP-08, CP-10, CP-12
	s := simulatedSnapshot(t, func(s *snapshot) { s.Process = backend.ControlPlane{} })
	p := decide(s)
	status := report(s, p, reconciler.Outcome{Done: p.Actions}).Status.(hostedv1.HostedControlPlaneStatus)
	if !ptr.Deref(status.Initialization.ControlPlaneInitialized, false) || !ptr.Deref(status.ExternalManagedControlPlane, false) || status.Version != "v1.30.0" {
		t.Errorf("right after its start: %+v", status)
	}
	if d := cmp.Diff(hostedv1.ProcessStatus{Since: metav1.NewTime(now)}, status.Process, cmpopts.EquateEmpty()); d != "" {
		t.Errorf("it has no process: %s", d)
	}
	for _, conditionType := range []string{"Available", "CertificatesAvailable", "EtcdClusterAvailable", "ProcessRunning", "VersionSupported", "AddonsApplied"} {
		if !condition.Set(status.Conditions).IsTrue(conditionType) {
			t.Errorf("%+v", condition.Set(status.Conditions).Get(conditionType))
		}
	}
}

// simulation is a backend of simulated control planes in memory, and what is wrong with them.
type simulation struct {
	processes
	faults simulated.Faults
}

func (*simulation) Capabilities(p policy.Configuration) backend.Capabilities {
	return hostedsimulated.New(nil).ControlPlanes.Capabilities(p)
}

func (*simulation) Reserve(context.Context, string, clusterv1.APIEndpoint) (clusterv1.APIEndpoint, error) {
	return clusterv1.APIEndpoint{Host: "127.0.0.1", Port: 12345}, nil
}

func (f *simulation) Faults(string) simulated.Faults { return f.faults }

func (f *simulation) SetFaults(_ string, faults simulated.Faults) {
	f.faults, f.p.Ready = faults, faults.Down == 0
}

func simulatedBackend(f *simulation) backend.Set {
	return backend.Set{hostedv1.BackendSimulated: hostedsimulated.WithFaults(backend.Backend{ControlPlanes: f, Endpoints: f}, f)}
}

func settleSimulated(t *testing.T, c client.WithWatch, p *backend.ControlPlane) {
	t.Helper()
	ctl := &controller{client: c, cache: c, backends: simulatedBackend(&simulation{processes: processes{p: p}}), now: func() time.Time { return now }}
	r := &reconciler.Reconciler[*hostedv1.HostedControlPlane, snapshot]{Controller: ctl.definition(), Client: c, Writer: kube.NewWriter(c, Name), Now: ctl.now}
	ctl.writer = r.Writer
	for range 12 { // a fixed point lies well below
		if _, err := r.Reconcile(context.Background(), ctrl.Request{NamespacedName: client.ObjectKey{Namespace: "ns", Name: "p"}}); err != nil && !errors.Is(err, testkit.ErrInjected) {
			t.Fatal(err)
		}
	}
}

func TestEverySimulatedWriteFailsOnce(t *testing.T) { // CP-01, CP-02, CP-10, CP-14, CP-15
	of := cluster()
	of.Spec.ControlPlaneEndpoint = clusterv1.APIEndpoint{}
	build := func() *fake.ClientBuilder {
		return fake.NewClientBuilder().WithScheme(newScheme(t)).WithObjects(simulatedPlane(), of).WithStatusSubresource(&hostedv1.HostedControlPlane{})
	}
	testkit.FailEachWrite(t, build, func(t *testing.T, c client.WithWatch) {
		p := &backend.ControlPlane{}
		settleSimulated(t, c, p)
		got := &hostedv1.HostedControlPlane{}
		if err := c.Get(context.Background(), client.ObjectKeyFromObject(plane()), got); err != nil {
			t.Fatal(err)
		}
		if !ptr.Deref(got.Status.Initialization.ControlPlaneInitialized, false) || !condition.Set(got.Status.Conditions).IsTrue("Available") {
			t.Errorf("status %+v", got.Status)
		}
		if got.Spec.ControlPlaneEndpoint.Port != 12345 || got.Annotations[hostedv1.InitializedAnnotation] == "" {
			t.Errorf("endpoint %+v, annotations %v", got.Spec.ControlPlaneEndpoint, got.Annotations)
		}
		secrets := &corev1.SecretList{}
		if err := c.List(context.Background(), secrets); err != nil || len(secrets.Items) != 2 {
			t.Errorf("%d secrets, want an authority and a kubeconfig: %v", len(secrets.Items), err)
		}
		if err := c.Delete(context.Background(), got); errors.Is(err, testkit.ErrInjected) {
			return // this run's failure was the test's own write
		}
		settleSimulated(t, c, p)
		if err := c.Get(context.Background(), client.ObjectKeyFromObject(plane()), got); !apierrors.IsNotFound(err) || p.Exists {
			t.Errorf("still there: %v, process %v", err, p.Exists)
		}
	})
}

// What annotations ask for goes wrong, whether the control plane runs already or is started with them, and is made right again.
func TestFaultsOnDemand(t *testing.T) {
	annotated := simulatedPlane()
	annotated.Annotations = map[string]string{hostedv1.APIDownAnnotation: "always"}
	c := fake.NewClientBuilder().WithScheme(newScheme(t)).WithObjects(annotated, cluster()).WithStatusSubresource(&hostedv1.HostedControlPlane{}).Build()
	f := &simulation{processes: processes{p: &backend.ControlPlane{}}}
	ctl := &controller{client: c, cache: c, backends: simulatedBackend(f), now: func() time.Time { return now }}
	r := &reconciler.Reconciler[*hostedv1.HostedControlPlane, snapshot]{Controller: ctl.definition(), Client: c, Writer: kube.NewWriter(c, Name), Now: ctl.now}
	ctl.writer = r.Writer
	said := func(annotation, value string) string {
		t.Helper()
		got := &hostedv1.HostedControlPlane{}
		must(t, c.Get(t.Context(), client.ObjectKeyFromObject(annotated), got))
		got.Annotations, got.Spec.ControlPlaneEndpoint = map[string]string{annotation: value}, clusterv1.APIEndpoint{Host: "127.0.0.1", Port: 12345}
		must(t, c.Update(t.Context(), got))
		for range 6 { // a fixed point lies well below
			_, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(annotated)})
			must(t, err)
		}
		must(t, c.Get(t.Context(), client.ObjectKeyFromObject(annotated), got))
		available := condition.Set(got.Status.Conditions).Get("Available")
		return string(available.Status) + ": " + available.Message
	}
	owner := &clusterv1.Cluster{}
	must(t, c.Get(t.Context(), client.ObjectKeyFromObject(cluster()), owner))
	owner.Spec.ControlPlaneEndpoint = clusterv1.APIEndpoint{}
	must(t, c.Update(t.Context(), owner))
	const down = "False: The API server does not respond, because annotation " + hostedv1.APIDownAnnotation + " makes it unreachable"
	const errs = "False: The API server responds to every request with status 503, because annotation " + hostedv1.APIErrorsAnnotation + " requests it"
	for _, step := range []struct{ annotation, value, want string }{
		{hostedv1.APIDownAnnotation, "always", down}, {hostedv1.APIDownAnnotation, "none", "True: "},
		{hostedv1.APIErrorsAnnotation, "503", errs}, {hostedv1.APIErrorsAnnotation, "9", "True: "}, {hostedv1.APIDownAnnotation, "30s", down},
	} {
		if got := said(step.annotation, step.value); got != step.want {
			t.Errorf("%s=%s: got %q, want %q", step.annotation, step.value, got, step.want)
		}
	}
	if want := (simulated.Faults{Down: 30 * time.Second}); f.faults != want {
		t.Errorf("got %+v, want %+v", f.faults, want)
	}
}

// A control plane that starts empty, although it had data, is an event that people see.
func TestStartedEmptyIsSaid(t *testing.T) { // H9
	yes := true
	s := simulatedSnapshot(t, func(s *snapshot) {
		s.Process, s.Plane.Status.Initialization.ControlPlaneInitialized = backend.ControlPlane{}, &yes
	})
	p := decide(s)
	events := report(s, p, reconciler.Outcome{Done: p.Actions}).Events
	if len(events) != 1 || events[0].Type != corev1.EventTypeWarning || events[0].Reason != "ControlPlaneStartedEmpty" {
		t.Errorf("%+v", events)
	}
}

// An object that goes without its finalizer, as in a move, leaves nothing that keeps a port; the data of a real control plane stays.
func TestGone(t *testing.T) {
	for name, tc := range map[string]struct {
		plane  *hostedv1.HostedControlPlane
		exists bool
	}{"simulated": {simulatedPlane(), false}, "process": {plane(), true}} {
		c := fake.NewClientBuilder().WithScheme(newScheme(t)).Build()
		simulation := &simulation{processes: processes{p: &backend.ControlPlane{Exists: tc.plane.Spec.Backend.Simulated != nil}}}
		real := &processes{p: &backend.ControlPlane{Exists: tc.plane.Spec.Backend.Simulated == nil}}
		backends := simulatedBackend(simulation)
		backends[plane().Spec.Backend.Name()] = backend.Backend{ControlPlanes: real}
		ctl := &controller{client: c, cache: c, backends: backends, now: func() time.Time { return now }}
		r := &reconciler.Reconciler[*hostedv1.HostedControlPlane, snapshot]{Controller: ctl.definition(), Client: c, Writer: kube.NewWriter(c, Name), Now: ctl.now}
		for range 2 {
			_, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(tc.plane)})
			must(t, err)
		}
		if simulation.p.Exists || real.p.Exists != tc.exists {
			t.Errorf("%s: the simulated one exists: %v, the real one: %v", name, simulation.p.Exists, real.p.Exists)
		}
	}
}
