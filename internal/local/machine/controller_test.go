package machine

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"k8s.io/utils/ptr"

	controlplanev1 "github.com/slipwayhq/slipway/api/controlplane/v1alpha1"
	infrav1 "github.com/slipwayhq/slipway/api/infrastructure/v1alpha1"
	"github.com/slipwayhq/slipway/internal/condition"
	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/kube"
	"github.com/slipwayhq/slipway/internal/local/backend"
	"github.com/slipwayhq/slipway/internal/reconciler"
	"github.com/slipwayhq/slipway/internal/reconciler/watches"
	"github.com/slipwayhq/slipway/test/testhost"
	"github.com/slipwayhq/slipway/test/testkit"
)

// world is the controller with a host and an API server in memory.
type world struct {
	*controller
	host *testhost.Host
	r    *reconciler.Reconciler[*infrav1.LocalMachine, snapshot]
	fail error
}

func newWorld(t *testing.T, objs ...client.Object) *world {
	t.Helper()
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clusterv1.AddToScheme, infrav1.AddToScheme, corev1.AddToScheme} {
		if err := add(s); err != nil {
			t.Fatal(err)
		}
	}
	w := &world{host: testhost.New()}
	owner, network := clusterNetwork()
	w.host.AddNetwork(testhost.Instance, owner, network)
	broken := func() error { err := w.fail; w.fail = nil; return err }
	cl := fake.NewClientBuilder().WithScheme(s).WithObjects(objs...).WithStatusSubresource(&infrav1.LocalMachine{}).
		WithReturnManagedFields().WithInterceptorFuncs(interceptor.Funcs{
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
			if err := broken(); err != nil {
				return err
			}
			return c.Patch(ctx, o, p, opts...)
		},
		SubResourcePatch: func(ctx context.Context, c client.Client, sub string, o client.Object, p client.Patch, opts ...client.SubResourcePatchOption) error {
			if err := broken(); err != nil {
				return err
			}
			return c.SubResource(sub).Patch(ctx, o, p, opts...)
		},
	}).Build()
	w.controller = &controller{client: cl, secrets: cl, Config: Config{Backends: w.host.Set(), Instance: "i", Policy: allowed()}, now: func() time.Time { return now }, writer: kube.NewWriter(cl, Name)}
	w.r = &reconciler.Reconciler[*infrav1.LocalMachine, snapshot]{Controller: w.definition(), Client: cl, Writer: w.writer, Now: w.now}
	return w
}

func (w *world) reconcile() error {
	_, err := w.r.Reconcile(context.Background(), ctrl.Request{NamespacedName: key})
	return err
}

func (w *world) get(t *testing.T) *infrav1.LocalMachine {
	t.Helper()
	o := &infrav1.LocalMachine{}
	if err := w.client.Get(t.Context(), key, o); err != nil {
		t.Fatal(err)
	}
	return o
}

func bootSecret() *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "boot"}, Data: map[string][]byte{
		"value": []byte("#cloud-config\nruncmd:\n- kubeadm join\n"), "format": []byte("cloud-config")}}
}

// IM-02, IM-05, IM-11: the whole way, with every step failing once, before or after its work was done.
func TestLifeWithEveryStepFailingOnce(t *testing.T) {
	boom := errors.New("boom")
	fails := map[string]func(*world, int){
		"nothing":   func(*world, int) {},
		"Create":    func(w *world, pass int) { failAt(pass, 0, func() { w.host.FailOnce("Create", boom) }) },
		"Inspect":   func(w *world, pass int) { failAt(pass, 2, func() { w.host.FailOnce("Inspect", boom) }) },
		"Bootstrap": func(w *world, pass int) { failAt(pass, 0, func() { w.host.FailOnce("Bootstrap", boom) }) },
		"Progress":  func(w *world, pass int) { failAt(pass, 3, func() { w.host.FailOnce("Progress", boom) }) },
		"write 0":   func(w *world, pass int) { failAt(pass, 0, func() { w.fail = boom }) },
		"write 1":   func(w *world, pass int) { failAt(pass, 1, func() { w.fail = boom }) },
		"write 2":   func(w *world, pass int) { failAt(pass, 2, func() { w.fail = boom }) },
		"write 3":   func(w *world, pass int) { failAt(pass, 3, func() { w.fail = boom }) },
		"write 4":   func(w *world, pass int) { failAt(pass, 4, func() { w.fail = boom }) },
		"Delete":    func(w *world, _ int) { w.host.FailOnce("Delete", boom) },
	}
	for n, inject := range fails {
		t.Run(n, func(t *testing.T) {
			w := newWorld(t, localMachine(func(o *infrav1.LocalMachine) { o.Finalizers = nil }), coreMachine(nil), coreCluster(nil), localCluster(), bootSecret())
			for pass := range 8 {
				inject(w, pass)
				_ = w.reconcile()
			}
			w.host.Change(name, func(m *testhost.Machine) {
				if m.Script == nil || !strings.Contains(string(m.Script.Body), "--provider-id=slipway:///"+name) || m.Script.Timeout != 5*time.Minute {
					t.Fatalf("the script tells the kubelet its provider ID (IM-02); got %+v", m.Script)
				}
				if !strings.Contains(string(m.Script.Body), "use-slipway-image-load") {
					t.Errorf("a network without a way out is not said to the bootstrap:\n%s", m.Script.Body)
				}
				m.Progress.Phase = backend.Succeeded
			})
			for range 4 {
				_ = w.reconcile()
			}
			o := w.get(t)
			if !ptr.Deref(o.Status.Initialization.Provisioned, false) || o.Spec.ProviderID != "slipway:///"+name || o.Status.InstanceID == "" ||
				!condition.Set(o.Status.Conditions).IsTrue(clusterv1.ReadyCondition) {
				t.Errorf("provisioned: got %+v, %+v", o.Spec, o.Status)
			}
			if err := w.client.Delete(t.Context(), o); err != nil {
				t.Fatal(err)
			}
			for pass := range 6 {
				inject(w, pass)
				_ = w.reconcile()
			}
			if err := w.client.Get(t.Context(), key, o); fault.KindOf(err) != fault.Gone {
				t.Errorf("the object is gone; got %v", err)
			}
			if m, _ := w.host.Inspect(t.Context(), backend.Ref{Object: types.NamespacedName(key), Name: name}); m.State != backend.Absent {
				t.Errorf("and its container; got %+v", m)
			}
		})
	}
}

func failAt(pass, at int, f func()) {
	if pass == at {
		f()
	}
}

func TestSteadyStateWritesNothing(t *testing.T) {
	w := newWorld(t, localMachine(nil), coreMachine(nil), coreCluster(nil), localCluster(), bootSecret())
	for range 4 {
		if err := w.reconcile(); err != nil {
			t.Fatal(err)
		}
	}
	w.host.Change(name, func(m *testhost.Machine) { m.Progress.Phase = backend.Succeeded })
	for range 3 {
		if err := w.reconcile(); err != nil {
			t.Fatal(err)
		}
	}
	before, log := w.get(t).ResourceVersion, len(w.host.Log())
	for range 3 {
		if err := w.reconcile(); err != nil {
			t.Fatal(err)
		}
	}
	if after := w.get(t).ResourceVersion; after != before || len(w.host.Log()) != log {
		t.Errorf("nothing happens, so nothing is written: %s → %s, %v", before, after, w.host.Log())
	}
}

func TestInterruptedBootstrapIsMadeAnew(t *testing.T) {
	w := newWorld(t, localMachine(nil), coreMachine(nil), coreCluster(nil), localCluster(), bootSecret())
	for range 4 {
		if err := w.reconcile(); err != nil {
			t.Fatal(err)
		}
	}
	w.host.Change(name, func(m *testhost.Machine) { m.Progress.Phase = backend.Interrupted })
	for range 4 {
		if err := w.reconcile(); err != nil {
			t.Fatal(err)
		}
	}
	want := []string{"Create " + name, "Bootstrap " + name, "Delete " + name, "Create " + name, "Bootstrap " + name}
	if diff := cmp.Diff(want, w.host.Log()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestDockerComesBack(t *testing.T) {
	w := newWorld(t, localMachine(nil), coreMachine(nil), coreCluster(nil), localCluster(), bootSecret())
	w.host.SetUnreachable(down)
	if err := w.reconcile(); err != nil {
		t.Fatalf("waiting is not an error; got %v", err)
	}
	if c := condition.Set(w.get(t).Status.Conditions).Get(infrav1.MachineProvisionedCondition); c.Reason != "DockerUnreachable" {
		t.Errorf("got %+v", c)
	}
	w.host.SetUnreachable(nil)
	if err := w.reconcile(); err != nil || len(w.host.Log()) != 1 {
		t.Errorf("it goes on by itself; got %v, %v", w.host.Log(), err)
	}
}

func TestBadBootstrapData(t *testing.T) {
	cases := map[string]struct {
		secret *corev1.Secret
		want   string
	}{
		"no secret": {&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "other"}}, "BootstrapSecretAbsent"},
		"no value":  {&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "boot"}}, "BootstrapSecretInvalid"},
		"ignition": {&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "boot"},
			Data: map[string][]byte{"value": []byte("{}"), "format": []byte("ignition")}}, "UnsupportedBootstrapFormat"},
	}
	for n, tc := range cases {
		t.Run(n, func(t *testing.T) {
			w := newWorld(t, localMachine(withID), coreMachine(nil), coreCluster(nil), localCluster(), tc.secret)
			for range 3 { // the fake client takes the condition Reconciled, which comes second, for all conditions
				_ = w.reconcile()
			}
			if c := condition.Set(w.get(t).Status.Conditions).Get(infrav1.BootstrapExecSucceededCondition); c.Status != "False" || c.Reason != tc.want {
				t.Errorf("got %+v", c)
			}
		})
	}
}

func TestPaused(t *testing.T) { // CT-10
	w := newWorld(t, localMachine(nil), coreMachine(nil), coreCluster(func(c *clusterv1.Cluster) { c.Spec.Paused = &yes }), localCluster(), bootSecret())
	if err := w.reconcile(); err != nil {
		t.Fatal(err)
	}
	if !condition.Set(w.get(t).Status.Conditions).IsTrue(clusterv1.PausedCondition) || len(w.host.Log()) != 0 {
		t.Errorf("got %+v, %v", w.get(t).Status.Conditions, w.host.Log())
	}
}

func TestWhatWakes(t *testing.T) {
	m := coreMachine(nil)
	m.Spec.InfrastructureRef = clusterv1.ContractVersionedObjectReference{Kind: "LocalMachine", APIGroup: infrav1.GroupVersion.Group, Name: "lm"}
	if got := ofMachine(t.Context(), m); len(got) != 1 || got[0].NamespacedName != types.NamespacedName(key) {
		t.Errorf("its Machine: got %v", got)
	}
	p := &clusterv1.MachinePool{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "mp"}}
	p.Spec.ClusterName = "c"
	p.Spec.Template.Spec.InfrastructureRef = clusterv1.ContractVersionedObjectReference{Kind: "LocalMachinePool", APIGroup: infrav1.GroupVersion.Group, Name: "lmp"}
	w := newWorld(t, localMachine(func(o *infrav1.LocalMachine) { o.Annotations = map[string]string{poolAnnotation: "lmp"} }))
	if got := w.ofPool(t.Context(), p); len(got) != 1 {
		t.Errorf("its MachinePool: got %v", got)
	}
	for e, want := range map[backend.Event]int{{}: 1, {Machine: types.NamespacedName(key)}: 1, {Network: "net"}: 0} {
		if got := w.ofEvent(t.Context(), e); len(got) != want {
			t.Errorf("event %+v: got %v", e, got)
		}
	}
}

// A machine that waits for the version of its hosted control plane is reconciled when that version changes.
func TestVersionOfHostedControlPlaneEnqueues(t *testing.T) {
	s := runtime.NewScheme()
	if err := infrav1.AddToScheme(s); err != nil {
		t.Fatal(err)
	}
	other := localMachine(func(o *infrav1.LocalMachine) { o.Name, o.Labels[clusterv1.ClusterNameLabel] = "other", "d" })
	c := &controller{client: testkit.WithIndexes(fake.NewClientBuilder().WithScheme(s).WithObjects(localMachine(nil), other),
		func(i client.FieldIndexer) error { return watches.IndexByCluster(i, Name, &infrav1.LocalMachine{}) }).Build()}
	before := plane("v1.35.0", func(p *controlplanev1.HostedControlPlane) {
		p.OwnerReferences = []metav1.OwnerReference{{APIVersion: clusterv1.GroupVersion.String(), Kind: "Cluster", Name: "c"}}
	})
	if diff := cmp.Diff([]ctrl.Request{{NamespacedName: key}}, c.ofControlPlane(t.Context(), before)); diff != "" {
		t.Errorf("enqueued (-want +got):\n%s", diff)
	}
	after := before.DeepCopy()
	after.Status.Version = "v1.36.3"
	if watched := versionChanged(); !watched.Update(event.UpdateEvent{ObjectOld: before, ObjectNew: after}) ||
		watched.Update(event.UpdateEvent{ObjectOld: after, ObjectNew: after.DeepCopy()}) {
		t.Error("only a change of the version enqueues")
	}
	skewed := newSnapshot(func(s *snapshot) { s.HostedControlPlane = before })
	if p := decide(skewed); p.Recheck != versionRecheck || p.Waits[0].Field != "status.version" {
		t.Errorf("the watch ends the wait, or a recheck if its event is missing; got %+v", p)
	}
}
