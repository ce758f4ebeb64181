package cluster

import (
	"context"
	"errors"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	infrav1 "github.com/slipwayhq/slipway/api/infrastructure/v1alpha1"
	"github.com/slipwayhq/slipway/internal/condition"
	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/infrastructure"
	"github.com/slipwayhq/slipway/internal/kube"
	"github.com/slipwayhq/slipway/internal/local/backend"
	"github.com/slipwayhq/slipway/internal/policy"
	"github.com/slipwayhq/slipway/internal/reconciler"
	"github.com/slipwayhq/slipway/internal/reconciler/watches"
	"github.com/slipwayhq/slipway/test/testhost"
	"github.com/slipwayhq/slipway/test/testkit"
)

// world is the controller with a host and an API server in memory.
type world struct {
	*controller
	host *testhost.Host
	gate infrastructure.ManagedReconciler
	fail error
}

func newWorld(t *testing.T, objs ...client.Object) *world {
	t.Helper()
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clusterv1.AddToScheme, infrav1.AddToScheme} {
		if err := add(s); err != nil {
			t.Fatal(err)
		}
	}
	w := &world{host: testhost.New()}
	broken := func() error { err := w.fail; w.fail = nil; return err }
	b := fake.NewClientBuilder().WithScheme(s).WithObjects(objs...).WithStatusSubresource(&infrav1.LocalCluster{})
	cl := testkit.WithIndexes(b, func(i client.FieldIndexer) error { return watches.IndexByCluster(i, Name, &infrav1.LocalMachine{}) }).
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
	w.controller = &controller{client: cl, Config: Config{Backends: w.host.Set(), Instance: "i", Policy: policy.Default()}, now: func() time.Time { return now }, writer: kube.NewWriter(cl, Name)}
	r := &reconciler.Reconciler[*infrav1.LocalCluster, snapshot]{Controller: w.definition(), Client: cl, Writer: w.writer, Now: w.now}
	w.gate = w.gated(r)
	return w
}

func (w *world) reconcile(times int) (last error) {
	for range times {
		_, last = w.gate.Reconcile(context.Background(), ctrl.Request{NamespacedName: client.ObjectKey{Namespace: "ns", Name: "lc"}})
	}
	return last
}

func (w *world) get(t *testing.T) *infrav1.LocalCluster {
	t.Helper()
	o := &infrav1.LocalCluster{}
	if err := w.client.Get(t.Context(), client.ObjectKey{Namespace: "ns", Name: "lc"}, o); err != nil {
		t.Fatal(err)
	}
	return o
}

// IC-02, IC-03, IC-04, IC-08: the whole way, with every step failing once after its work was done or before.
func TestLifeWithEveryStepFailingOnce(t *testing.T) {
	boom := errors.New("boom")
	fails := map[string]func(*world, int){
		"nothing":       func(*world, int) {},
		"EnsureNetwork": func(w *world, pass int) { failAt(pass, 0, func() { w.host.FailOnce("EnsureNetwork", boom) }) },
		"FindNetwork":   func(w *world, pass int) { failAt(pass, 1, func() { w.host.FailOnce("FindNetwork", boom) }) },
		"write 0":       func(w *world, pass int) { failAt(pass, 0, func() { w.fail = boom }) },
		"write 1":       func(w *world, pass int) { failAt(pass, 1, func() { w.fail = boom }) },
		"write 2":       func(w *world, pass int) { failAt(pass, 2, func() { w.fail = boom }) },
		"write 3":       func(w *world, pass int) { failAt(pass, 3, func() { w.fail = boom }) },
		"DeleteNetwork": func(w *world, _ int) { w.host.FailOnce("DeleteNetwork", boom) },
	}
	for name, inject := range fails {
		t.Run(name, func(t *testing.T) {
			domains := []clusterv1.FailureDomain{{Name: "a"}}
			w := newWorld(t, coreCluster(nil), localCluster(func(o *infrav1.LocalCluster) { o.Finalizers = nil; o.Spec.FailureDomains = domains }))
			for pass := range 10 {
				inject(w, pass)
				_ = w.reconcile(1)
			}
			o := w.get(t)
			if !cmp.Equal(o.Finalizers, []string{infrav1.LocalClusterFinalizer}) || o.Status.Initialization.Provisioned == nil ||
				o.Spec.ControlPlaneEndpoint.String() != "172.16.0.1:6443" || o.Status.Network.Subnet != "172.16.0.0/18" ||
				!cmp.Equal(o.Status.FailureDomains, domains) || !condition.Set(o.Status.Conditions).IsTrue(clusterv1.ReadyCondition) {
				t.Errorf("provisioned: got %+v, %+v, %+v", o.Finalizers, o.Spec, o.Status)
			}
			if err := w.client.Delete(t.Context(), o); err != nil {
				t.Fatal(err)
			}
			for pass := range 6 {
				inject(w, pass)
				_ = w.reconcile(1)
			}
			if err := w.client.Get(t.Context(), client.ObjectKeyFromObject(o), o); fault.KindOf(err) != fault.Gone {
				t.Errorf("the object is gone; got %v", err)
			}
			if _, ok, _ := w.host.FindNetwork(t.Context(), backend.Ref{Object: client.ObjectKeyFromObject(o)}); ok {
				t.Error("and its network")
			}
		})
	}
}

func failAt(pass, at int, f func()) {
	if pass == at {
		f()
	}
}

func TestNotOurs(t *testing.T) {
	cases := map[string]func(*infrav1.LocalCluster){
		"no owner (IC-08)":           func(o *infrav1.LocalCluster) { o.OwnerReferences = nil },
		"managed externally (IC-07)": func(o *infrav1.LocalCluster) { o.Annotations = map[string]string{clusterv1.ManagedByAnnotation: "x"} },
	}
	for name, change := range cases {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, coreCluster(nil), localCluster(func(o *infrav1.LocalCluster) { o.Finalizers = nil; change(o) }))
			before := w.get(t)
			if err := w.reconcile(3); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(before, w.get(t)); diff != "" || len(w.host.Log()) != 0 {
				t.Errorf("nothing is touched (-before +after):\n%s%v", diff, w.host.Log())
			}
		})
	}
}

// A restore loses the status, and the object has another UID: its network is found by label. A status that names another's
// network finds nothing.
func TestNetworkIsFoundByLabel(t *testing.T) {
	own := client.ObjectKey{Namespace: "ns", Name: "lc"}
	made := backend.Network{Name: backend.NetworkName("i", own), ID: "1", Subnet: netip.MustParsePrefix("172.24.0.0/18"), Gateway: netip.MustParseAddr("172.24.0.1")}
	moved := made
	moved.Name = backend.NetworkName("there", own)
	cases := map[string]struct {
		reason, instance, object, status string
		network                          backend.Network
		found                            bool
	}{
		"restored":         {"made here, by an object with another UID", "i", "lc", "", made, true},
		"claimed":          {"made by another instance, and only the status says that it is this one's", "there", "lc", moved.Name, moved, false},
		"another cluster":  {"the same namespace and name in another management cluster", "there", "lc", "", moved, false},
		"forged":           {"the status names a neighbour's network", "i", "neighbour", made.Name, made, false},
		"forged, Docker's": {"the status names another program's network", "", "", made.Name, made, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, coreCluster(nil), localCluster(func(o *infrav1.LocalCluster) { o.Status.Network.Name = tc.status }))
			w.host.AddNetwork(tc.instance, backend.Owner{Object: client.ObjectKey{Namespace: "ns", Name: tc.object}, UID: "another"}, tc.network)
			s, err := w.observe(t.Context(), w.get(t))
			if err != nil || (s.Network != nil) != tc.found {
				t.Errorf("%s: got %+v, %v", tc.reason, s.Network, err)
			}
		})
	}
}

func TestPaused(t *testing.T) { // CT-10
	yes := true
	w := newWorld(t, coreCluster(func(c *clusterv1.Cluster) { c.Spec.Paused = &yes }), localCluster(nil))
	if err := w.reconcile(3); err != nil {
		t.Fatal(err)
	}
	if !condition.Set(w.get(t).Status.Conditions).IsTrue(clusterv1.PausedCondition) || len(w.host.Log()) != 0 {
		t.Errorf("got %+v, %v", w.get(t).Status.Conditions, w.host.Log())
	}
}

func TestWhatWakes(t *testing.T) {
	ref := func(kind, group string) *clusterv1.Cluster {
		return coreCluster(func(c *clusterv1.Cluster) {
			c.Spec.InfrastructureRef = clusterv1.ContractVersionedObjectReference{Kind: kind, APIGroup: group, Name: "lc"}
		})
	}
	if got := ofCluster(t.Context(), ref("LocalCluster", infrav1.GroupVersion.Group)); len(got) != 1 || got[0].Name != "lc" {
		t.Errorf("the Cluster that refers to it: got %v", got)
	}
	if got := ofCluster(t.Context(), ref("DockerCluster", "infrastructure.cluster.x-k8s.io")); len(got) != 0 {
		t.Errorf("another provider's: got %v", got)
	}
	w := newWorld(t, localCluster(nil), ref("LocalCluster", infrav1.GroupVersion.Group))
	member := &infrav1.LocalMachine{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "m", Labels: map[string]string{clusterv1.ClusterNameLabel: "c"}}}
	if got := w.ofMember(t.Context(), member); len(got) != 1 || got[0].Name != "lc" {
		t.Errorf("a LocalMachine of the cluster, which may be the last: got %v", got)
	}
	name := backend.NetworkName("i", client.ObjectKey{Namespace: "ns", Name: "lc"})
	for e, want := range map[backend.Event]int{
		{}:                  1,
		{Network: name}:     1,
		{Network: "bridge"}: 0,
		{Machine: client.ObjectKey{Namespace: "ns", Name: "lc"}}: 0,
	} {
		if got := w.ofEvent(t.Context(), e); len(got) != want {
			t.Errorf("event %+v: got %v", e, got)
		}
	}
	if !strings.HasPrefix(name, "slipway-ns-lc-") {
		t.Error(name)
	}
}

// MV-13: at the end of a move with data the Cluster is gone before its last machine. The LocalCluster, which waits for that, hears of it.
func TestLastMachineAfterTheCluster(t *testing.T) {
	member := &infrav1.LocalMachine{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "m", Labels: map[string]string{clusterv1.ClusterNameLabel: "c"}}}
	other := localCluster(func(o *infrav1.LocalCluster) { o.Name, o.OwnerReferences[0].Name = "other", "d" })
	want := []reconcile.Request{{NamespacedName: client.ObjectKey{Namespace: "ns", Name: "lc"}}}
	if diff := cmp.Diff(want, newWorld(t, localCluster(nil), other).ofMember(t.Context(), member)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
