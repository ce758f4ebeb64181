package machine

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
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

	infrav1 "github.com/slipwayhq/slipway/api/infrastructure/v1alpha1"
	"github.com/slipwayhq/slipway/internal/condition"
	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/kube"
	"github.com/slipwayhq/slipway/internal/loop"
	"github.com/slipwayhq/slipway/internal/policy"
	"github.com/slipwayhq/slipway/internal/providers/local/backend"
	"github.com/slipwayhq/slipway/internal/testkit/flaky"
)

func simulatedMachine(change func(*infrav1.LocalMachine)) *infrav1.LocalMachine {
	o := localMachine(change)
	if o.Spec.Backend.Simulated == nil {
		o.Spec.Backend.Simulated = &infrav1.SimulatedMachine{}
	}
	return o
}

func simulatedSnapshot(change func(*Snapshot)) Snapshot {
	s := snapshot(func(s *Snapshot) { s.Object, s.Network = simulatedMachine(nil), nil })
	change(&s)
	return s
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
	identify := "set the provider ID to slipway:///" + name + ": this is the machine"
	join := "make Node lm: the machine has started"
	up := backend.SimulatedMachine{Owner: "lm-uid", Booted: now, Joined: true, Since: now}
	cases := map[string]struct {
		reason  string
		change  func(*Snapshot)
		want    []string
		waits   []string
		recheck time.Duration
	}{
		"new":      {"no delay: at once", func(*Snapshot) {}, []string{identify, join}, nil, 0},
		"no owner": {"nobody wants it yet", func(s *Snapshot) { s.Machine = nil }, nil, []string{"WaitingForOwner"}, 0},
		"no infra": {"IM-11", func(s *Snapshot) { s.Cluster.Status.Initialization.InfrastructureProvisioned = nil }, nil, []string{"WaitingForClusterInfrastructureReady"}, 0},
		"no data":  {"IM-11", func(s *Snapshot) { s.Machine.Spec.Bootstrap.DataSecretName = nil }, nil, []string{"WaitingForBootstrapData"}, 0},
		"no control plane": {"what starts it wakes the machine", func(s *Snapshot) { s.Fault = fault.New(fault.Unreachable, "WaitingForControlPlane", "waiting") },
			nil, []string{"WaitingForControlPlane"}, 0},
		"delay": {"it begins to start", func(s *Snapshot) { s.Object = delayed("90s", "") },
			[]string{identify, "start simulated machine lm, whose Node appears in 1m30s"}, []string{"Booting"}, 90 * time.Second},
		"starting": {"the rest of the delay", func(s *Snapshot) {
			s.Object, s.Simulated = delayed("90s", ""), backend.SimulatedMachine{Booted: now.Add(-60 * time.Second)}
		}, []string{identify}, []string{"Booting"}, 30 * time.Second},
		"started": {"the delay is over", func(s *Snapshot) {
			s.Object, s.Simulated = delayed("90s", ""), backend.SimulatedMachine{Booted: now.Add(-90 * time.Second)}
		}, []string{identify, join}, nil, 0},
		"never boots":            {"an annotation", func(s *Snapshot) { s.Object = annotated(infrav1.NeverBootsAnnotation, "", nil) }, nil, []string{"NeverBoots"}, 0},
		"never boots, not meant": {"the value false", func(s *Snapshot) { s.Object = annotated(infrav1.NeverBootsAnnotation, "false", nil) }, []string{identify, join}, nil, 0},
		"joined":                 {"nothing to do, whether the Node was deleted or not", func(s *Snapshot) { s.Object, s.Simulated = simulatedMachine(was), up }, nil, nil, 0},
		"killed in between":      {"the provider ID was not written", func(s *Snapshot) { s.Simulated = up }, []string{identify}, nil, 0},
		"lost": {"the last moments before a kill were not written down", func(s *Snapshot) { s.Object = simulatedMachine(was) },
			[]string{"make Node lm: the state of the simulated cluster was lost"}, nil, 0},
		"not ready later": {"an annotation", func(s *Snapshot) {
			s.Object, s.Simulated = annotated(infrav1.NotReadyAfterAnnotation, "30s", was), up
			s.Simulated.Since = now.Add(-10 * time.Second)
		}, nil, nil, 20 * time.Second},
		"not ready now": {"the time has come", func(s *Snapshot) {
			s.Object, s.Simulated = annotated(infrav1.NotReadyAfterAnnotation, "30s", was), up
			s.Simulated.Since = now.Add(-30 * time.Second)
		}, []string{"make Node lm not ready: an annotation says so"}, nil, soon},
		"not ready": {"as it should be", func(s *Snapshot) {
			s.Object, s.Simulated = annotated(infrav1.NotReadyAfterAnnotation, "0s", was), up
			s.Simulated.NotReady = true
		}, nil, nil, 0},
		"ready again": {"the annotation is gone", func(s *Snapshot) {
			s.Object, s.Simulated = simulatedMachine(was), up
			s.Simulated.NotReady = true
		}, []string{"make Node lm ready: no annotation says otherwise any more"}, nil, 0},
		"not a time": {"cannot be read: as if it were absent", func(s *Snapshot) { s.Object, s.Simulated = annotated(infrav1.NotReadyAfterAnnotation, "soon", was), up }, nil, nil, 0},
		"deleting":   {"it leaves", func(s *Snapshot) { s.Object, s.Simulated = simulatedMachine(deleted), up }, []string{"end simulated machine lm: the LocalMachine is being deleted"}, nil, soon},
		"too many":   {"as many as the operator allows", func(s *Snapshot) { s.Room = &Room{All: 5000} }, nil, []string{"DeniedByPolicy"}, roomAgain},
		"off": {"the operator has switched simulation off", func(s *Snapshot) { s.Policy.Providers.Disabled = []policy.Provider{policy.Simulated} },
			nil, []string{"DeniedByPolicy"}, 0},
		"one of them": {"it is counted already", func(s *Snapshot) { s.Room = nil }, []string{identify, join}, nil, 0},
		"foreign ID":  {"the name of another machine", func(s *Snapshot) { s.Name = "" }, nil, []string{"ForeignProviderID"}, 0},
		"gone":        {"the finalizer goes", func(s *Snapshot) { s.Object = simulatedMachine(deleted) }, nil, nil, 0},
		"deleting, no control plane": {"nothing is left of the machine", func(s *Snapshot) {
			s.Object, s.Fault = simulatedMachine(deleted), fault.New(fault.Unreachable, "WaitingForControlPlane", "waiting")
		}, nil, nil, 0},
	}
	for n, tc := range cases {
		t.Run(n, func(t *testing.T) {
			p := Decide(simulatedSnapshot(tc.change))
			var did, waits []string
			for _, a := range p.Actions {
				did = append(did, a.String())
			}
			for _, w := range p.Wait {
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
		s := simulatedSnapshot(func(s *Snapshot) { s.Object = delayed("10s", "5s"); s.Object.UID = uid })
		got := s.startup()
		if got < 10*time.Second || got > 15*time.Second || got != s.startup() {
			t.Errorf("machine %s takes %s", uid, got)
		}
		seen[got] = true
	}
	if len(seen) < 2 {
		t.Errorf("all machines take as long: %v", seen)
	}
}

// simulation is a Simulation in memory.
type simulation map[string]backend.SimulatedMachine

func (f simulation) Inspect(_ context.Context, _ types.NamespacedName, n string) (backend.SimulatedMachine, error) {
	return f[n], nil
}

func (f simulation) Boot(_ context.Context, _ types.NamespacedName, n backend.SimulatedNode) error {
	f[n.Name] = backend.SimulatedMachine{Owner: n.Owner, Booted: n.At}
	return nil
}

func (f simulation) Join(_ context.Context, _ types.NamespacedName, n backend.SimulatedNode) error {
	f[n.Name] = backend.SimulatedMachine{Owner: n.Owner, Booted: n.At, Joined: true, Since: n.At}
	return nil
}

func (f simulation) SetReady(_ context.Context, _ types.NamespacedName, n string, ready bool) error {
	m := f[n]
	m.NotReady = !ready
	f[n] = m
	return nil
}

func (f simulation) Remove(_ context.Context, _ types.NamespacedName, n string) error {
	delete(f, n)
	return nil
}

func (f simulation) Subscribe(func(types.NamespacedName)) func() { return func() {} }

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
func settle(t *testing.T, c client.WithWatch, sim simulation) {
	t.Helper()
	at := now
	ctl := &Controller{client: c, secrets: c, simulation: sim, instance: "i", now: func() time.Time { return at }, writer: kube.NewWriter(c, Name)}
	r := &loop.Reconciler[*infrav1.LocalMachine, Snapshot]{Controller: ctl.driven(), Client: c, Writer: ctl.writer, Now: ctl.now}
	for range 12 { // a fixed point lies well below
		_, err := r.Reconcile(context.Background(), ctrl.Request{NamespacedName: key})
		if err != nil && !errors.Is(err, flaky.ErrInjected) {
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
	flaky.EveryWrite(t, build, func(t *testing.T, c client.WithWatch) {
		sim := simulation{}
		settle(t, c, sim)
		got := &infrav1.LocalMachine{}
		if err := c.Get(context.Background(), key, got); err != nil {
			t.Fatal(err)
		}
		want := clusterv1.MachineAddresses{{Type: clusterv1.MachineHostName, Address: "lm"}, {Type: clusterv1.MachineInternalIP, Address: backend.SimulatedAddress(name).String()}}
		if !isTrue(got.Status.Initialization.Provisioned) || got.Spec.ProviderID != backend.ProviderID(name) ||
			!condition.Set(got.Status.Conditions).IsTrue(clusterv1.ReadyCondition) || !cmp.Equal(got.Status.Addresses, want) {
			t.Errorf("provider ID %s, status %+v", got.Spec.ProviderID, got.Status)
		}
		if !sim["lm"].Joined {
			t.Errorf("the machine is %+v", sim["lm"])
		}
		if err := c.Delete(context.Background(), got); errors.Is(err, flaky.ErrInjected) {
			return // this run's failure was the test's own write
		}
		settle(t, c, sim)
		if err := c.Get(context.Background(), key, got); !apierrors.IsNotFound(err) || len(sim) > 0 {
			t.Errorf("still there: %v %v", err, sim)
		}
	})
}

// A machine writes itself twice: the provider ID, and the status. (The driver's finalizer is there already.)
func TestSimulatedWritesAreFew(t *testing.T) {
	writes := 0
	c := fake.NewClientBuilder().WithScheme(scheme(t)).WithReturnManagedFields().WithStatusSubresource(&infrav1.LocalMachine{}).
		WithObjects(simulatedMachine(nil), coreMachine(nil), coreCluster(nil)).WithInterceptorFuncs(counting(&writes)).Build()
	settle(t, c, simulation{})
	if writes != 2 {
		t.Errorf("%d writes, want 2", writes)
	}
}

func TestSimulatedConditions(t *testing.T) { // IM-06
	cases := map[string]struct {
		change       func(*Snapshot)
		status, says string
	}{
		"waiting":  {func(s *Snapshot) { s.Machine = nil }, "False", "waiting for a Machine or a MachinePool to own this object"},
		"starting": {func(s *Snapshot) { s.Object = delayed("1m", "") }, "False", "the simulated machine is starting, which takes 1m0s"},
		"joined":   {func(s *Snapshot) { s.Simulated.Joined = true }, "True", ""},
	}
	for n, tc := range cases {
		s := simulatedSnapshot(tc.change)
		status := Report(s, Decide(s), loop.Outcome{}).Status.(infrav1.LocalMachineStatus)
		c := condition.Set(status.Conditions).Get(infrav1.NodeSimulatedCondition)
		if c == nil || c.Status != metav1.ConditionStatus(tc.status) || c.Message != tc.says {
			t.Errorf("%s: %+v", n, c)
		}
		if other := condition.Set(status.Conditions).Get(infrav1.ContainerProvisionedCondition); other != nil {
			t.Errorf("%s: a simulated machine has no container: %+v", n, other)
		}
	}
	restarted := simulatedSnapshot(func(s *Snapshot) {
		s.Object, s.Fault = simulatedMachine(was), fault.New(fault.Unreachable, "WaitingForControlPlane", "waiting")
	})
	if r := Report(restarted, Decide(restarted), loop.Outcome{}); r.Status != nil {
		t.Errorf("before its control plane is started again the status stays: %+v", r.Status)
	}
}

// The maximum of simulated machines is kept whatever happens at the same time, and what leaves makes room: H3.
func TestSimulatedMaximum(t *testing.T) {
	var c crowd
	there := simulatedMachine(was)
	if err := c.seed(t.Context(), fake.NewClientBuilder().WithScheme(scheme(t)).WithObjects(there).Build()); err != nil {
		t.Fatal(err)
	}
	if c.room(client.ObjectKeyFromObject(there)) != nil {
		t.Error("what was there before counts")
	}
	most := policy.Maximum{Namespace: 3, Total: 4}
	var entered atomic.Int32
	var wg sync.WaitGroup
	for i := range 20 {
		wg.Go(func() {
			if c.enter(types.NamespacedName{Namespace: "ns", Name: fmt.Sprint(i)}, most) == "" {
				entered.Add(1)
			}
		})
	}
	wg.Wait()
	if entered.Load() != 2 {
		t.Errorf("%d entered beside the one that was there, want 2", entered.Load())
	}
	if why := c.enter(types.NamespacedName{Namespace: "ns", Name: "late"}, most); !strings.Contains(why, "maxima.simulatedNodes.namespace") {
		t.Errorf("got %q", why)
	}
	c.leave(client.ObjectKeyFromObject(there))
	c.leave(client.ObjectKeyFromObject(there))
	if why := c.enter(types.NamespacedName{Namespace: "ns", Name: "late"}, most); why != "" {
		t.Errorf("there is room again: %q", why)
	}
	if r := c.room(types.NamespacedName{Namespace: "other"}); r.Own != 0 || r.All != 3 {
		t.Errorf("counted: %+v", r)
	}
}
