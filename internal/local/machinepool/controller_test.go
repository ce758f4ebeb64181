package machinepool

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	infrav1 "github.com/slipwayhq/slipway/api/infrastructure/v1alpha1"
	"github.com/slipwayhq/slipway/internal/condition"
	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/kube"
	"github.com/slipwayhq/slipway/internal/local/backend"
	"github.com/slipwayhq/slipway/internal/local/simulated"
	"github.com/slipwayhq/slipway/internal/policy"
	"github.com/slipwayhq/slipway/internal/reconciler"
	"github.com/slipwayhq/slipway/test/testhost"
)

var key = client.ObjectKey{Namespace: "ns", Name: "lmp"}

// world is the controller, an API server in memory, and a clock.
type world struct {
	*controller
	t    *testing.T
	r    reconcile.Reconciler
	time time.Time
	// writes counts the writes of the controller; the one with number failing fails.
	writes, failing int
}

func newWorld(t *testing.T, failing int, objs ...client.Object) *world {
	t.Helper()
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clusterv1.AddToScheme, infrav1.AddToScheme} {
		if err := add(s); err != nil {
			t.Fatal(err)
		}
	}
	w := &world{t: t, time: now, failing: failing}
	inner := fake.NewClientBuilder().WithScheme(s).WithObjects(objs...).
		WithStatusSubresource(&infrav1.LocalMachinePool{}, &infrav1.LocalMachine{}).WithReturnManagedFields().Build()
	cl := interceptor.NewClient(inner, interceptor.Funcs{
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
			return w.write(func() error { return c.Patch(ctx, o, p, opts...) })
		},
		SubResourcePatch: func(ctx context.Context, c client.Client, sub string, o client.Object, p client.Patch, opts ...client.SubResourcePatchOption) error {
			return w.write(func() error { return c.SubResource(sub).Patch(ctx, o, p, opts...) })
		},
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
			return w.write(func() error { return c.Create(ctx, o, opts...) })
		},
		Delete: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.DeleteOption) error {
			return w.write(func() error { return c.Delete(ctx, o, opts...) })
		},
	})
	w.controller = &controller{client: cl, live: cl, writer: kube.NewWriter(cl, Name), now: func() time.Time { return w.time }}
	w.r = w.gated(&reconciler.Reconciler[*infrav1.LocalMachinePool, snapshot]{Controller: w.definition(), Client: cl, Writer: w.writer, Now: w.now})
	// What the world itself does is not to fail.
	w.live = inner
	return w
}

var errBoom = errors.New("boom")

// write does the work; the write that is to fail fails after it was done, so that the caller cannot know.
func (w *world) write(work func() error) error {
	w.writes++
	fails := w.writes == w.failing
	if err := work(); err != nil {
		return err
	}
	if fails {
		return errBoom
	}
	return nil
}

func (w *world) reconcile() error {
	w.time = w.time.Add(time.Second)
	_, err := w.r.Reconcile(w.t.Context(), ctrl.Request{NamespacedName: key})
	return err
}

// settle lets the controller and the rest of the world work until nothing more happens.
func (w *world) settle() {
	w.t.Helper()
	const enough = 3 // passes in which nothing happens
	for quiet, pass := 0, 0; quiet < enough; pass++ {
		if pass > 100 {
			w.t.Fatal("it does not settle")
		}
		before := w.writes
		_ = w.reconcile()
		if quiet++; w.provision() || w.writes != before {
			quiet = 0
		}
	}
}

func (w *world) world() client.Client { return w.live.(client.Client) }

// provision is the rest of the world: machines get ready, each gets a Machine, deleted Machines take their
// LocalMachine with them.
func (w *world) provision() (changed bool) {
	w.t.Helper()
	for _, m := range w.locals() {
		if m.Status.Initialization.Provisioned == nil {
			ready := member(m.Name, 0, "ready").Local
			m.Spec.ProviderID = ready.Spec.ProviderID
			w.must(w.world().Update(w.t.Context(), &m))
			m.Status = ready.Status
			w.must(w.world().Status().Update(w.t.Context(), &m))
			changed = true
		}
		machine := &clusterv1.Machine{}
		err := w.world().Get(w.t.Context(), client.ObjectKeyFromObject(&m), machine)
		if fault.KindOf(err) == fault.Gone {
			changed = true
			if slices.Contains(m.Finalizers, "had-machine") {
				m.Finalizers = nil
				w.must(w.world().Update(w.t.Context(), &m))
				w.must(client.IgnoreNotFound(w.world().Delete(w.t.Context(), &m)))
				continue
			}
			machine = &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: m.Namespace, Name: m.Name, Labels: m.Labels}}
			machine.Spec.InfrastructureRef = clusterv1.ContractVersionedObjectReference{Kind: "LocalMachine", APIGroup: infrav1.GroupVersion.Group, Name: m.Name}
			w.must(w.world().Create(w.t.Context(), machine))
			m.Finalizers = []string{"had-machine"}
			w.must(w.world().Update(w.t.Context(), &m))
		}
	}
	return changed
}

func (w *world) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) locals() []infrav1.LocalMachine {
	w.t.Helper()
	var list infrav1.LocalMachineList
	w.must(w.world().List(w.t.Context(), &list))
	return list.Items
}

func (w *world) names() []string {
	var out []string
	for _, m := range w.locals() {
		out = append(out, m.Name)
	}
	return out
}

func (w *world) pool() *infrav1.LocalMachinePool {
	w.t.Helper()
	o := &infrav1.LocalMachinePool{}
	w.must(w.world().Get(w.t.Context(), key, o))
	return o
}

func (w *world) scale(replicas int32) {
	w.t.Helper()
	p := &clusterv1.MachinePool{}
	w.must(w.world().Get(w.t.Context(), client.ObjectKey{Namespace: "ns", Name: "mp"}, p))
	p.Spec.Replicas = &replicas
	w.must(w.world().Update(w.t.Context(), p))
}

func (w *world) check(replicas int) {
	w.t.Helper()
	o := w.pool()
	var ids []string
	for _, n := range w.names() {
		ids = append(ids, backend.ProviderID(n))
	}
	slices.Sort(ids)
	if len(ids) != replicas || !cmp.Equal(ids, o.Spec.ProviderIDList) || int(*o.Status.Replicas) != replicas || len(o.Status.Instances) != replicas ||
		!condition.Set(o.Status.Conditions).IsTrue(clusterv1.ReadyCondition) || o.Status.Initialization.Provisioned == nil || o.Status.Ready == nil {
		w.t.Errorf("want %d machines; machines %v, spec %+v, status %+v", replicas, ids, o.Spec, o.Status)
	}
}

// The whole life of a pool: 0 → 3 → 1 → 2, one lost, a new version, deletion. Every write fails once.
func TestLifeWithEveryWriteFailingOnce(t *testing.T) {
	total := life(t, 0)
	if total < 15 {
		t.Fatalf("only %d writes: the test does not do what it says", total)
	}
	for n := 1; n <= total; n++ {
		life(t, n)
	}
}

func life(t *testing.T, failing int) int {
	t.Helper()
	w := newWorld(t, failing, coreCluster(), corePool(3, nil), localPool(func(o *infrav1.LocalMachinePool) {
		o.Finalizers, o.Spec.ProviderID = nil, ""
	}))
	w.settle()
	w.check(3)
	if w.pool().Spec.ProviderID == "" {
		t.Error("IP2-04")
	}
	w.scale(1)
	w.settle()
	w.check(1)
	w.scale(2)
	w.settle()
	w.check(2)

	lost := w.locals()[0]
	lost.Status = member(lost.Name, 0, "lost").Local.Status
	w.must(w.world().Status().Update(t.Context(), &lost))
	w.settle()
	w.check(2)
	if slices.Contains(w.names(), lost.Name) {
		t.Errorf("the lost machine is replaced; got %v", w.names())
	}

	before := w.names()
	p := &clusterv1.MachinePool{}
	w.must(w.world().Get(t.Context(), client.ObjectKey{Namespace: "ns", Name: "mp"}, p))
	p.Spec.Template.Spec.Version = "v1.36.4"
	w.must(w.world().Update(t.Context(), p))
	w.settle()
	w.check(2)
	for _, n := range before {
		if slices.Contains(w.names(), n) {
			t.Errorf("outdated machines are replaced; got %v, before %v", w.names(), before)
		}
	}

	w.must(w.world().Delete(t.Context(), w.pool()))
	w.settle()
	if err := w.world().Get(t.Context(), key, &infrav1.LocalMachinePool{}); fault.KindOf(err) != fault.Gone || len(w.names()) != 0 {
		t.Errorf("pool and machines are gone; got %v, %v", err, w.names())
	}
	return w.writes
}

// A rollout never has fewer Ready machines than asked for, nor more than one too many.
func TestRolloutKeepsCapacity(t *testing.T) {
	w := newWorld(t, 0, coreCluster(), corePool(3, nil), localPool(nil))
	w.settle()
	o := w.pool()
	o.Spec.Template.Backend.Container = &infrav1.ContainerMachine{Image: "other"}
	w.must(w.world().Update(t.Context(), o))
	for range 40 {
		w.must(w.reconcile())
		ready := 0
		for _, m := range w.locals() {
			if condition.Set(m.Status.Conditions).IsTrue(clusterv1.ReadyCondition) {
				ready++
			}
		}
		if n := len(w.locals()); ready < 3 || n > 4 {
			t.Fatalf("%d machines, %d of them Ready", n, ready)
		}
		w.provision()
	}
	w.check(3)
	for _, m := range w.locals() {
		if m.Spec.Backend.Container == nil || m.Spec.Backend.Container.Image != "other" {
			t.Errorf("machine %s is outdated", m.Name)
		}
	}
}

func TestSteadyStateWritesNothing(t *testing.T) {
	w := newWorld(t, 0, coreCluster(), corePool(2, nil), localPool(nil))
	w.settle()
	before := w.writes
	for range 5 {
		w.must(w.reconcile())
	}
	if w.writes != before {
		t.Errorf("nothing happens, so nothing is written; got %d writes", w.writes-before)
	}
}

func TestNotOurs(t *testing.T) { // IC-07
	cases := map[string]func(*infrav1.LocalMachinePool){
		"no owner": func(o *infrav1.LocalMachinePool) { o.OwnerReferences = nil },
		"managed externally": func(o *infrav1.LocalMachinePool) {
			o.Annotations = map[string]string{clusterv1.ManagedByAnnotation: ""}
		},
	}
	for name, change := range cases {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, 0, coreCluster(), corePool(2, nil), localPool(func(o *infrav1.LocalMachinePool) { o.Finalizers = nil; change(o) }))
			w.must(w.reconcile())
			if w.writes != 0 {
				t.Errorf("nothing is touched; got %d writes", w.writes)
			}
		})
	}
}

func TestPaused(t *testing.T) { // IP2-11, CT-10
	w := newWorld(t, 0, coreCluster(), corePool(2, nil), localPool(func(o *infrav1.LocalMachinePool) {
		o.Annotations = map[string]string{clusterv1.PausedAnnotation: ""}
	}))
	w.must(w.reconcile())
	if !condition.Set(w.pool().Status.Conditions).IsTrue(clusterv1.PausedCondition) || len(w.names()) != 0 {
		t.Errorf("got %+v, %v", w.pool().Status.Conditions, w.names())
	}
}

func TestWhatWakes(t *testing.T) { // IP2-05: every change reaches the pool at once
	w := newWorld(t, 0, member("a", 1, "ready").Local)
	want := []reconcile.Request{{NamespacedName: types.NamespacedName(key)}}
	p := corePool(1, nil)
	p.Spec.Template.Spec.InfrastructureRef = clusterv1.ContractVersionedObjectReference{Kind: "LocalMachinePool", APIGroup: infrav1.GroupVersion.Group, Name: "lmp"}
	if diff := cmp.Diff(want, ofPool(t.Context(), p)); diff != "" {
		t.Errorf("its MachinePool (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(want, ofLocalMachine(t.Context(), member("a", 1, "").Local)); diff != "" {
		t.Errorf("its LocalMachine (-want +got):\n%s", diff)
	}
	m := &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "a"}}
	m.Spec.InfrastructureRef = clusterv1.ContractVersionedObjectReference{Kind: "LocalMachine", APIGroup: infrav1.GroupVersion.Group, Name: "a"}
	if diff := cmp.Diff(want, w.ofMachine(t.Context(), m)); diff != "" {
		t.Errorf("its Machine (-want +got):\n%s", diff)
	}
	if got := ofLocalMachine(t.Context(), &infrav1.LocalMachine{}); got != nil {
		t.Errorf("a LocalMachine of no pool wakes none; got %v", got)
	}
}

// The autoscaler scales a pool of no machines by what its infrastructure object says of one, and follows changes of the
// template; a write that fails is made again.
func TestOffersFromZero(t *testing.T) { // IM-10, AS-01
	container := testhost.New().Set()[infrav1.ContainerBackend]
	for failing := range 4 {
		w := newWorld(t, failing, localPool(nil), corePool(0, nil), coreCluster())
		w.nodes = backend.CapacityCalculator{
			Host:     backend.HostResources{Processors: 8, Memory: 24 << 30, Architecture: "arm64"},
			Backends: backend.Set{infrav1.ContainerBackend: container, infrav1.SimulatedBackend: simulated.New(nil, nil, time.Now)},
			Policy:   policy.Configuration{Nodes: policy.Nodes{CPUs: 4}},
		}
		for _, step := range []struct {
			backend     infrav1.LocalMachineBackend
			cpu, memory string
		}{
			{infrav1.LocalMachineBackend{}, "4", "24476Mi"},
			{infrav1.LocalMachineBackend{Container: &infrav1.ContainerMachine{Resources: infrav1.ContainerResources{CPUs: 2, MemoryMiB: 4096}}}, "2", "3996Mi"},
			{infrav1.LocalMachineBackend{Simulated: &infrav1.SimulatedMachine{}}, "8", "16Gi"},
		} {
			o := w.pool()
			o.Spec.Template.Backend = step.backend
			w.must(w.world().Update(t.Context(), o))
			w.settle()
			got := w.pool().Status
			if got.Capacity.Cpu().String() != step.cpu || got.Capacity.Memory().String() != step.memory || got.Capacity.Pods().String() != "110" {
				t.Errorf("write %d fails: %s offers %v, want %s, %s", failing, step.backend.Name(), got.Capacity, step.cpu, step.memory)
			}
			if got.NodeInfo != (infrav1.NodeInfo{Architecture: "arm64", OperatingSystem: "linux"}) || *got.Replicas != 0 {
				t.Errorf("write %d fails: got %+v", failing, got)
			}
		}
	}
}
