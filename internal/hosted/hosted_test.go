package hosted

import (
	"context"
	"errors"
	"net/netip"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"k8s.io/utils/ptr"

	hostedv1 "github.com/slipwayhq/slipway/api/controlplane/v1alpha1"
	"github.com/slipwayhq/slipway/internal/condition"
	"github.com/slipwayhq/slipway/internal/controlplane/processconfig"
	"github.com/slipwayhq/slipway/internal/controlplane/supervisor"
	"github.com/slipwayhq/slipway/internal/hosted/addons"
	"github.com/slipwayhq/slipway/internal/hosted/backend"
	"github.com/slipwayhq/slipway/internal/hosted/process"
	"github.com/slipwayhq/slipway/internal/hosted/simulated"
	"github.com/slipwayhq/slipway/internal/kube"
	"github.com/slipwayhq/slipway/internal/kubeadm/secrets"
	"github.com/slipwayhq/slipway/internal/policy"
	"github.com/slipwayhq/slipway/internal/reconciler"
	"github.com/slipwayhq/slipway/test/testkit"
)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

const version = "v1.36.3"

var now = time.Date(2026, 5, 6, 7, 8, 9, 0, time.UTC)

func plane() *hostedv1.HostedControlPlane {
	return &hostedv1.HostedControlPlane{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "p", UID: "plane", Labels: map[string]string{clusterv1.ClusterNameLabel: "c"},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: clusterv1.GroupVersion.String(), Kind: "Cluster", Name: "c", UID: "cluster"}}},
		Spec: hostedv1.HostedControlPlaneSpec{Version: version},
	}
}

func cluster() *clusterv1.Cluster {
	yes := true
	c := &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "c", UID: "cluster"}}
	c.Spec.ControlPlaneEndpoint = clusterv1.APIEndpoint{Host: "172.31.0.1", Port: 6443}
	c.Spec.InfrastructureRef = clusterv1.ContractVersionedObjectReference{APIGroup: "infrastructure.slipway.dev", Kind: "LocalCluster", Name: "l"}
	c.Status.Initialization.InfrastructureProvisioned = &yes
	return c
}

// running is a control plane that has all it needs.
func running(t *testing.T, changes ...func(*snapshot)) snapshot {
	t.Helper()
	s := snapshot{Now: now, Plane: plane(), Cluster: cluster(), Secrets: map[secretPurpose]*corev1.Secret{},
		Gateway: hostGateway{Known: true, Address: netip.MustParseAddr("172.31.0.1")}, ReservedPorts: []uint16{6440, 12345 + 1}}
	s.Capabilities.Versions = []string{version}
	s.Capabilities = termsOf(s)
	for _, p := range authorities() {
		data, err := secrets.Generate(p, secrets.KeyOptions{}, s.Now)
		if err != nil {
			t.Fatal(err)
		}
		s.Secrets[p] = newSecret(s, p, data)
	}
	data, err := newKubeconfig(s)
	if err != nil {
		t.Fatal(err)
	}
	s.Secrets[purposeKubeconfig] = newSecret(s, purposeKubeconfig, data)
	s.Kubeconfig = secrets.ParseKubeconfig(s.Secrets[purposeKubeconfig])
	s.Process = backend.ControlPlane{Exists: true, Running: true, Ready: true, EtcdReady: true, PID: 42, Version: version, Config: configOf(s).Hash()}
	s.Plane.Status.AddonsHash = addonsOf(s).Hash()
	s.Addons.At = now
	for _, change := range changes {
		change(&s)
	}
	s.Capabilities = termsOf(s)
	return s
}

// termsOf are the facts about the control plane that its backend tells.
func termsOf(s snapshot) backend.Capabilities {
	if s.Plane.Spec.Backend.Name() == hostedv1.BackendSimulated {
		return simulated.New(nil).ControlPlanes.Capabilities(s.Policy)
	}
	return processTerms(s.Policy, s.Capabilities.Versions...)
}

// processTerms are the capabilities of control planes that run as processes with one of these versions.
func processTerms(allowed policy.Configuration, versions ...string) backend.Capabilities {
	s := supervisor.New(context.Background(), supervisor.Config{Versions: func() []string { return versions }})
	defer s.Close()
	return process.New(s, false).ControlPlanes.Capabilities(allowed)
}

// older is a control plane that an earlier release of this program started.
func older(s *snapshot) {
	s.Plane.Spec.Version, s.Process.Version, s.Process.Config = "v1.36.1", "v1.36.1", ""
	s.Process.Data = processconfig.Data{Exists: true, Version: "v1.36.1"}
}

// elsewhere is a Cluster whose writer has chosen the endpoint.
func elsewhere(host string, port int32) func(*snapshot) {
	return func(s *snapshot) {
		s.Cluster.Spec.ControlPlaneEndpoint = clusterv1.APIEndpoint{Host: host, Port: port}
		s.Kubeconfig.Server = secrets.ServerURL(endpointOf(*s))
	}
}

func texts(p reconciler.Plan) []string {
	var out []string
	for _, a := range p.Actions {
		out = append(out, "do: "+a.String())
	}
	for _, w := range p.Waits {
		out = append(out, "wait: "+w.Message)
	}
	return out
}

// processes is a supervisor whose processes are ready at once.
type processes struct {
	p *backend.ControlPlane
	// local is where their API servers answer on this host.
	local string
}

func (f processes) Status(context.Context, string) (backend.ControlPlane, error) { return *f.p, nil }

func (f processes) Start(_ context.Context, _ string, cfg processconfig.Config, _ map[string][]byte) error {
	*f.p = backend.ControlPlane{Exists: true, Running: true, Ready: true, EtcdReady: true, PID: 1, Local: f.local, Version: cfg.Version, Config: cfg.Hash()}
	return nil
}

func (f processes) Count(context.Context, string) (own, all int, err error) { return 0, 0, nil }

func (f processes) Remove(context.Context, string) error { *f.p = backend.ControlPlane{}; return nil }

func (f processes) Subscribe(func(string)) (cancel func()) { return func() {} }

func (f processes) Capabilities(p policy.Configuration) backend.Capabilities {
	return processTerms(p, version)
}

// backends are those that a controller has whose processes are these.
func backends(p backend.ControlPlanes) backend.Set {
	return backend.Set{hostedv1.BackendProcess: {ControlPlanes: p}}
}

// inspected says that all add-ons are available.
func inspected(context.Context, *rest.Config, addons.Params) (addons.State, error) {
	return addons.State{}, nil
}

// gateway is a host whose address in the network of the one LocalCluster is the endpoint.
type gateway struct{}

func (gateway) Gateway(_ context.Context, of types.NamespacedName) (netip.Addr, bool, error) {
	return netip.MustParseAddr("172.31.0.1"), of == types.NamespacedName{Namespace: "ns", Name: "l"}, nil
}

func newScheme(t *testing.T) *runtime.Scheme {
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clusterv1.AddToScheme, corev1.AddToScheme, hostedv1.AddToScheme} {
		if err := add(s); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

func settle(t *testing.T, c client.WithWatch, p *backend.ControlPlane) {
	t.Helper()
	ctl := &controller{client: c, cache: c, backends: backends(processes{p, "127.1.2.3:6443"}), gateways: gateway{}, now: func() time.Time { return now },
		applyObjects: func(context.Context, *rest.Config, addons.Params) error { return nil }, inspect: inspected}
	r := &reconciler.Reconciler[*hostedv1.HostedControlPlane, snapshot]{Controller: ctl.definition(), Client: c, Writer: kube.NewWriter(c, Name), Now: ctl.now}
	ctl.writer = r.Writer
	for range 12 { // a fixed point lies well below
		if _, err := r.Reconcile(context.Background(), ctrl.Request{NamespacedName: client.ObjectKey{Namespace: "ns", Name: "p"}}); err != nil && !errors.Is(err, testkit.ErrInjected) {
			t.Fatal(err)
		}
	}
}

func TestEveryWriteFailsOnce(t *testing.T) { // CP-01, CP-10, CP-14, CP-15
	build := func() *fake.ClientBuilder {
		return fake.NewClientBuilder().WithScheme(newScheme(t)).WithObjects(plane(), cluster()).WithStatusSubresource(&hostedv1.HostedControlPlane{})
	}
	testkit.FailEachWrite(t, build, func(t *testing.T, c client.WithWatch) {
		p := &backend.ControlPlane{}
		settle(t, c, p)
		got := &hostedv1.HostedControlPlane{}
		if err := c.Get(context.Background(), client.ObjectKeyFromObject(plane()), got); err != nil {
			t.Fatal(err)
		}
		if !ptr.Deref(got.Status.Initialization.ControlPlaneInitialized, false) || !condition.Set(got.Status.Conditions).IsTrue("Available") || got.Annotations[hostedv1.InitializedAnnotation] == "" {
			t.Errorf("annotations %v, status %+v", got.Annotations, got.Status)
		}
		if err := c.Delete(context.Background(), got); errors.Is(err, testkit.ErrInjected) {
			return // this run's failure was the test's own write
		}
		settle(t, c, p)
		if err := c.Get(context.Background(), client.ObjectKeyFromObject(plane()), got); !apierrors.IsNotFound(err) || p.Exists {
			t.Errorf("still there: %v, process %v", err, p.Exists)
		}
	})
}

// table is control planes of which each has its own state.
type table map[string]backend.ControlPlane

func (t table) Status(_ context.Context, name string) (backend.ControlPlane, error) {
	return t[name], nil
}

func (t table) Start(context.Context, string, processconfig.Config, map[string][]byte) error {
	return nil
}

func (t table) Count(context.Context, string) (own, all int, err error) { return 2, len(t), nil }

func (t table) Remove(context.Context, string) error { return nil }

func (t table) Subscribe(func(string)) (cancel func()) { return func() {} }

func (t table) Capabilities(p policy.Configuration) backend.Capabilities {
	return processTerms(p, version)
}

// Of many control planes one is restarted at a time, and the next when it is ready.
func TestTurns(t *testing.T) {
	all := table{"ns.a": {Exists: true, Running: true, Ready: true, Version: "v1.36.1"}, "ns.b": {Exists: true, Running: true, Ready: true, Version: "v1.36.1"}}
	ctl := &controller{backends: backends(all)}
	take := func(name string, at time.Time) bool {
		s := running(t, older, func(s *snapshot) { s.Plane.Name, s.Now = name, at })
		s, err := ctl.readRequested(t.Context(), s, backend.TakeTurn{})
		if err != nil || !s.Turn.Known {
			t.Fatal(err)
		}
		return s.Turn.Granted
	}
	first, again := take("a", now), take("a", now)
	if !first || !again || take("b", now) {
		t.Error("the first has the turn until it is ready at the new version")
	}
	all["ns.a"] = backend.ControlPlane{Exists: true, Running: true, Version: version}
	if take("b", now) {
		t.Error("the first is not ready yet")
	}
	all["ns.a"] = backend.ControlPlane{Exists: true, Running: true, Ready: true, Version: version}
	if !take("b", now) {
		t.Error("the first is ready")
	}
	all["ns.b"] = backend.ControlPlane{Exists: true}
	if take("c", now) || !take("c", now.Add(5*time.Minute)) {
		t.Error("one that does not get ready holds the others up for a while")
	}
	delete(all, "ns.c")
	if !take("d", now.Add(5*time.Minute)) {
		t.Error("one that was deleted holds nobody up")
	}
	s, err := ctl.readRequested(t.Context(), running(t), backend.CountControlPlanes{})
	if want := (backend.PlaneCount{Known: true, Own: 2, All: 2}); err != nil || s.PlaneCount != want {
		t.Errorf("%+v, %v", s.PlaneCount, err)
	}
}
