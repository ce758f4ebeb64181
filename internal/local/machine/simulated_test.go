package machine

import (
	"context"
	"errors"
	"net/netip"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"k8s.io/utils/ptr"

	infrav1 "github.com/slipwayhq/slipway/api/infrastructure/v1alpha1"
	"github.com/slipwayhq/slipway/internal/condition"
	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/kube"
	"github.com/slipwayhq/slipway/internal/local/backend"
	"github.com/slipwayhq/slipway/internal/local/simulated"
	"github.com/slipwayhq/slipway/internal/policy"
	"github.com/slipwayhq/slipway/internal/reconciler"
	"github.com/slipwayhq/slipway/test/testkit"
)

func simulatedMachine(change func(*infrav1.LocalMachine)) *infrav1.LocalMachine {
	o := localMachine(change)
	if o.Spec.Backend.Simulated == nil {
		o.Spec.Backend.Simulated = &infrav1.SimulatedMachine{}
	}
	return o
}

// simulatedSnapshot is one of a machine in memory, with what annotations make wrong with it.
func simulatedSnapshot(change func(*snapshot)) snapshot {
	s := newSnapshot(func(s *snapshot) { s.Object, s.Network, s.HostMachine = simulatedMachine(nil), nil, backend.Machine{} })
	change(&s)
	if s.Name == "" {
		s.Capabilities = backend.Capabilities{}
		return s
	}
	host := &played{now: func() time.Time { return now }}
	if s.HostMachine.State != "" {
		host.machines = map[types.NamespacedName]backend.Machine{types.NamespacedName(key): s.HostMachine}
	}
	b := host.set()[infrav1.SimulatedBackend].Faults(s.Object.Annotations)
	s.Capabilities = b.Machines.Capabilities(s.request())
	s.HostMachine, _ = b.Machines.Inspect(context.Background(), s.ref()) // it never fails
	if s.Quota != nil && s.Quota.All == 0 {
		room, _ := b.Machines.CheckQuota(context.Background(), desiredMachine(s)) // likewise
		s.Quota = &room
	}
	return s
}

// simulatedHost is a simulated machine of the object in this state.
func simulatedHost(state backend.MachineState, since time.Time) backend.Machine {
	m := backend.Machine{Name: name, State: state, Since: since, Owner: backend.Owner{Object: types.NamespacedName(key), UID: "lm-uid"}}
	if state == backend.Running {
		m.Hostname, m.Address = "lm", simulatedAddress()
	}
	return m
}

// simulatedAddress is the address of the Node, which is known before it exists.
func simulatedAddress() netip.Addr {
	o := simulatedMachine(nil)
	return simulated.New(nil, nil, nil).Machines.Capabilities(backend.MachineRequest{Name: name, Object: o}).Running.Address
}

func delayed(delay, jitter infrav1.Duration) *infrav1.LocalMachine {
	return simulatedMachine(func(o *infrav1.LocalMachine) {
		o.Spec.Backend.Simulated = &infrav1.SimulatedMachine{StartupDelay: delay, Jitter: jitter}
	})
}

func annotated(annotation, value string, change func(*infrav1.LocalMachine)) *infrav1.LocalMachine {
	o := simulatedMachine(change)
	o.Annotations = map[string]string{annotation: value}
	return o
}

func TestDecideSimulated(t *testing.T) { // IM-02, IM-11
	identify := "set the provider ID to slipway:///" + name + ": it identifies the machine"
	create := "create and start machine " + name + ": "
	up := simulatedHost(backend.Running, now)
	cases := map[string]struct {
		reason  string
		change  func(*snapshot)
		want    []string
		waits   []string
		recheck time.Duration
	}{
		"new":      {"no delay: at once", func(*snapshot) {}, []string{identify, create + "there is none yet"}, nil, 0},
		"no owner": {"nobody wants it yet", func(s *snapshot) { s.Machine = nil }, nil, []string{"WaitingForOwner"}, 0},
		"no infra": {"IM-11", func(s *snapshot) { s.Cluster.Status.Initialization.InfrastructureProvisioned = nil }, nil, []string{"WaitingForClusterInfrastructureReady"}, 0},
		"no data":  {"IM-11", func(s *snapshot) { s.Machine.Spec.Bootstrap.DataSecretName = nil }, nil, []string{"WaitingForBootstrapData"}, 0},
		"no control plane": {"what starts it wakes the machine", func(s *snapshot) { s.Fault = fault.New(fault.Unreachable, "WaitingForControlPlane", "waiting") },
			nil, []string{"WaitingForControlPlane"}, 0},
		"delay": {"it begins to start", func(s *snapshot) { s.Object = delayed("90s", "") },
			[]string{identify, "create and start machine " + name + ", which takes 1m30s: there is none yet"}, []string{"Booting"}, 90 * time.Second},
		"starting": {"the rest of the delay", func(s *snapshot) {
			s.Object, s.HostMachine = delayed("90s", ""), simulatedHost(backend.Created, now.Add(-60*time.Second))
		}, []string{identify}, []string{"Booting"}, 30 * time.Second},
		"started": {"the delay is over", func(s *snapshot) {
			s.Object, s.HostMachine = delayed("90s", ""), simulatedHost(backend.Created, now.Add(-90*time.Second))
		}, []string{identify, create + "it exists and does not run"}, nil, 0},
		"never boots":            {"an annotation", func(s *snapshot) { s.Object = annotated(infrav1.NeverBootsAnnotation, "", nil) }, nil, []string{"NeverBoots"}, 0},
		"never boots, not meant": {"the value false", func(s *snapshot) { s.Object = annotated(infrav1.NeverBootsAnnotation, "false", nil) }, []string{identify, create + "there is none yet"}, nil, 0},
		"joined":                 {"nothing to do, whether the Node was deleted or not", func(s *snapshot) { s.Object, s.HostMachine = simulatedMachine(was), up }, nil, nil, 0},
		"killed in between":      {"the provider ID was not written", func(s *snapshot) { s.HostMachine = up }, []string{identify}, nil, 0},
		"lost": {"the last moments before a kill were not written down", func(s *snapshot) { s.Object = simulatedMachine(was) },
			[]string{create + "it was lost with its workload cluster's memory"}, nil, 0},
		"not ready later": {"an annotation", func(s *snapshot) {
			s.Object, s.HostMachine = annotated(infrav1.NotReadyAfterAnnotation, "30s", was), up
			s.HostMachine.Since = now.Add(-10 * time.Second)
		}, nil, nil, 20 * time.Second},
		"not ready now": {"the time has come", func(s *snapshot) {
			s.Object, s.HostMachine = annotated(infrav1.NotReadyAfterAnnotation, "30s", was), up
			s.HostMachine.Since = now.Add(-30 * time.Second)
		}, []string{"change machine " + name + ": an annotation requests that its Node is not ready"}, nil, 0},
		"not ready": {"as it should be", func(s *snapshot) {
			s.Object, s.HostMachine = annotated(infrav1.NotReadyAfterAnnotation, "0s", was), up
			s.HostMachine.Degraded = true
		}, nil, nil, 0},
		"ready again": {"the annotation is gone", func(s *snapshot) {
			s.Object, s.HostMachine = simulatedMachine(was), up
			s.HostMachine.Degraded = true
		}, []string{"change machine " + name + ": no annotation requests any more that its Node is not ready"}, nil, 0},
		"not a time": {"the change says what is wrong with it", func(s *snapshot) {
			s.Object, s.HostMachine = annotated(infrav1.NotReadyAfterAnnotation, "soon", was), up
		},
			[]string{"change machine " + name + ": an annotation is invalid"}, nil, 0},
		"deleting": {"it leaves", func(s *snapshot) { s.Object, s.HostMachine = simulatedMachine(deleted), up }, []string{"delete machine " + name + ": the LocalMachine is being deleted"}, nil, immediateRecheck},
		"too many": {"as many as the operator allows", func(s *snapshot) { s.Quota = &backend.Quota{All: 5000} }, nil, []string{"DeniedByPolicy"}, quotaRecheck},
		"off": {"the operator has switched simulation off", func(s *snapshot) { s.Policy.Providers.Disabled = []policy.Provider{"simulated"} },
			nil, []string{"DeniedByPolicy"}, 0},
		"foreign ID": {"the name of another machine", func(s *snapshot) { s.Name = "" }, nil, []string{"ForeignProviderID"}, 0},
		"gone":       {"the finalizer goes", func(s *snapshot) { s.Object = simulatedMachine(deleted) }, nil, nil, 0},
		"deleting, no control plane": {"nothing is left of the machine", func(s *snapshot) {
			s.Object, s.Fault = simulatedMachine(deleted), fault.New(fault.Unreachable, "WaitingForControlPlane", "waiting")
		}, nil, nil, 0},
	}
	for n, tc := range cases {
		t.Run(n, func(t *testing.T) {
			p := decide(simulatedSnapshot(tc.change))
			var did, waits []string
			for _, a := range p.Actions {
				did = append(did, a.String())
			}
			for _, w := range p.Waits {
				waits = append(waits, w.Reason)
			}
			if d := cmp.Diff([]any{tc.want, tc.waits, tc.recheck}, []any{did, waits, p.Recheck}); d != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, d)
			}
		})
	}
}

func TestStartupIsBounded(t *testing.T) {
	seen := map[time.Duration]bool{}
	for _, uid := range []types.UID{"a", "b", "c", "d", "e"} {
		s := simulatedSnapshot(func(s *snapshot) { s.Object = delayed("10s", "5s"); s.Object.UID = uid })
		got := s.Capabilities.Startup
		if got < 10*time.Second || got > 15*time.Second || got != simulated.New(nil, nil, nil).Machines.Capabilities(s.request()).Startup {
			t.Errorf("machine %s takes %s", uid, got)
		}
		seen[got] = true
	}
	if len(seen) < 2 {
		t.Errorf("all machines take as long: %v", seen)
	}
}

// played is the simulated backend, without clusters.
type played struct {
	machines map[types.NamespacedName]backend.Machine
	now      func() time.Time
}

func newPlayed() *played { return &played{machines: map[types.NamespacedName]backend.Machine{}} }

func (f *played) set() backend.Set {
	return backend.Set{infrav1.SimulatedBackend: simulated.WrapFaulty(backend.Backend{Machines: f}, f.now)}
}

func (*played) Capabilities(r backend.MachineRequest) backend.Capabilities {
	return simulated.New(nil, nil, nil).Machines.Capabilities(r)
}

func (*played) CheckQuota(context.Context, backend.MachineSpec) (backend.Quota, error) {
	return backend.Quota{}, nil
}

func (f *played) Inspect(_ context.Context, ref backend.Ref) (backend.Machine, error) {
	if m, ok := f.machines[ref.Object]; ok {
		return m, nil
	}
	return backend.Machine{Name: ref.Name, State: backend.Absent}, nil
}

func (f *played) Create(_ context.Context, spec backend.MachineSpec) ([]string, error) {
	m, ok := f.machines[spec.Owner.Object]
	switch {
	case !ok && spec.Startup > 0:
		m = simulatedHost(backend.Created, f.now())
	case m.State != backend.Running && !f.now().Before(m.Since.Add(spec.Startup)):
		m = simulatedHost(backend.Running, f.now())
	}
	f.machines[spec.Owner.Object] = m
	return nil, nil
}

func (f *played) SetFaults(context.Context, backend.Ref, string) error { return nil }

func (f *played) SetReady(_ context.Context, ref backend.Ref, ready bool) error {
	m := f.machines[ref.Object]
	m.Degraded = !ready
	f.machines[ref.Object] = m
	return nil
}

func (f *played) Delete(_ context.Context, ref backend.Ref) error {
	delete(f.machines, ref.Object)
	return nil
}

func scheme(t *testing.T) *runtime.Scheme {
	t.Helper()
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clusterv1.AddToScheme, infrav1.AddToScheme, corev1.AddToScheme} {
		if err := add(s); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

// counting counts the writes.
func counting(n *int) interceptor.Funcs {
	return interceptor.Funcs{
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
			*n++
			return c.Patch(ctx, o, p, opts...)
		},
		SubResourcePatch: func(ctx context.Context, c client.Client, sub string, o client.Object, p client.Patch, opts ...client.SubResourcePatchOption) error {
			*n++
			return c.SubResource(sub).Patch(ctx, o, p, opts...)
		},
	}
}

// settle reconciles until nothing changes, while time passes.
func settle(t *testing.T, c client.WithWatch, sim *played) {
	t.Helper()
	at := now
	sim.now = func() time.Time { return at }
	ctl := &controller{client: c, secrets: c, Config: Config{Backends: sim.set(), Instance: "i"}, now: func() time.Time { return at }, writer: kube.NewWriter(c, Name)}
	r := &reconciler.Reconciler[*infrav1.LocalMachine, snapshot]{Controller: ctl.definition(), Client: c, Writer: ctl.writer, Now: ctl.now}
	for range 12 { // a fixed point lies well below
		_, err := r.Reconcile(context.Background(), ctrl.Request{NamespacedName: key})
		if err != nil && !errors.Is(err, testkit.ErrInjected) {
			t.Fatal(err)
		}
		at = at.Add(time.Second)
	}
}

func TestEverySimulatedWriteFailsOnce(t *testing.T) { // IM-02, IM-04, IM-05, IM-06
	build := func() *fake.ClientBuilder {
		return fake.NewClientBuilder().WithScheme(scheme(t)).WithReturnManagedFields().WithStatusSubresource(&infrav1.LocalMachine{}).
			WithObjects(delayed("3s", ""), coreMachine(nil), coreCluster(nil))
	}
	testkit.FailEachWrite(t, build, func(t *testing.T, c client.WithWatch) {
		sim := newPlayed()
		settle(t, c, sim)
		got := &infrav1.LocalMachine{}
		if err := c.Get(context.Background(), key, got); err != nil {
			t.Fatal(err)
		}
		want := clusterv1.MachineAddresses{{Type: clusterv1.MachineHostName, Address: "lm"}, {Type: clusterv1.MachineInternalIP, Address: simulatedAddress().String()}}
		if !ptr.Deref(got.Status.Initialization.Provisioned, false) || got.Spec.ProviderID != backend.ProviderID(name) ||
			!condition.Set(got.Status.Conditions).IsTrue(clusterv1.ReadyCondition) || !cmp.Equal(got.Status.Addresses, want) {
			t.Errorf("provider ID %s, status %+v", got.Spec.ProviderID, got.Status)
		}
		if m := sim.machines[types.NamespacedName(key)]; m.State != backend.Running {
			t.Errorf("the machine is %+v", m)
		}
		if err := c.Delete(context.Background(), got); errors.Is(err, testkit.ErrInjected) {
			return // this run's failure was the test's own write
		}
		settle(t, c, sim)
		if err := c.Get(context.Background(), key, got); !apierrors.IsNotFound(err) || len(sim.machines) > 0 {
			t.Errorf("still there: %v %v", err, sim)
		}
	})
}

// A machine writes itself twice: the provider ID, and the status. (The driver's finalizer is there already.)
func TestSimulatedWritesAreFew(t *testing.T) {
	writes := 0
	c := fake.NewClientBuilder().WithScheme(scheme(t)).WithReturnManagedFields().WithStatusSubresource(&infrav1.LocalMachine{}).
		WithObjects(simulatedMachine(nil), coreMachine(nil), coreCluster(nil)).WithInterceptorFuncs(counting(&writes)).Build()
	settle(t, c, newPlayed())
	if writes != 2 {
		t.Errorf("%d writes, want 2", writes)
	}
}

func TestSimulatedConditions(t *testing.T) { // IM-06
	cases := map[string]struct {
		change       func(*snapshot)
		status, says string
	}{
		"waiting":  {func(s *snapshot) { s.Machine = nil }, "False", "Waiting for a Machine or a MachinePool to own this object"},
		"starting": {func(s *snapshot) { s.Object = delayed("1m", "") }, "False", "The machine is starting, which takes 1m0s"},
		"joined":   {func(s *snapshot) { s.HostMachine = simulatedHost(backend.Running, now) }, "True", ""},
	}
	for n, tc := range cases {
		s := simulatedSnapshot(tc.change)
		status := report(s, decide(s), reconciler.Outcome{}).Status.(infrav1.LocalMachineStatus)
		c := condition.Set(status.Conditions).Get(infrav1.MachineProvisionedCondition)
		if c == nil || c.Status != metav1.ConditionStatus(tc.status) || c.Message != tc.says {
			t.Errorf("%s: %+v", n, c)
		}
		if other := condition.Set(status.Conditions).Get(infrav1.BootstrapExecSucceededCondition); other != nil {
			t.Errorf("%s: nothing is run in a simulated machine: %+v", n, other)
		}
	}
	restarted := simulatedSnapshot(func(s *snapshot) {
		s.Object, s.Fault = simulatedMachine(was), fault.New(fault.Unreachable, "WaitingForControlPlane", "waiting")
	})
	if r := report(restarted, decide(restarted), reconciler.Outcome{}); r.Status != nil {
		t.Errorf("before its control plane is started again the status stays: %+v", r.Status)
	}
}
