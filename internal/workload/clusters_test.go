package workload

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/workqueue"
	clocktesting "k8s.io/utils/clock/testing"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/policy"
)

func typesUID(s string) types.UID { return types.UID(s) }

var key = client.ObjectKey{Namespace: "ns", Name: "c1"}

// bench is a management cluster with one Cluster, and the component under test.
type bench struct {
	t        testing.TB
	mgmt     client.Client
	clusters *Clusters
	clock    *clocktesting.FakePassiveClock
	registry *prometheus.Registry
	queue    workqueue.TypedRateLimitingInterface[reconcile.Request]
}

func newBench(t testing.TB, change func(*Config)) *bench {
	t.Helper()
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clusterv1.AddToScheme, corev1.AddToScheme} {
		if err := add(s); err != nil {
			t.Fatal(err)
		}
	}
	b := &bench{t: t, clock: clocktesting.NewFakePassiveClock(t0), registry: prometheus.NewRegistry()}
	b.mgmt = fake.NewClientBuilder().WithScheme(s).WithStatusSubresource(&clusterv1.Cluster{}).
		WithObjects(&clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}}).Build()
	cfg := Config{Management: b.mgmt, Clock: b.clock, Registerer: b.registry}
	if change != nil {
		change(&cfg)
	}
	c, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	b.clusters = c
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() { defer close(ended); _ = c.Start(ctx) }()
	t.Cleanup(func() { cancel(); <-ended })
	b.queue = workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
	t.Cleanup(b.queue.ShutDown)
	if err := c.Changed("machine", nil).Start(ctx, b.queue); err != nil {
		t.Fatal(err)
	}
	return b
}

func (b *bench) reconcile() ctrl.Result {
	b.t.Helper()
	r, err := b.clusters.Reconcile(context.Background(), ctrl.Request{NamespacedName: key})
	if err != nil {
		b.t.Fatal(err)
	}
	return r
}

func (b *bench) provision() {
	b.t.Helper()
	var c clusterv1.Cluster
	yes := true
	if err := b.mgmt.Get(context.Background(), key, &c); err != nil {
		b.t.Fatal(err)
	}
	c.Status.Initialization.InfrastructureProvisioned = &yes
	if err := b.mgmt.Status().Update(context.Background(), &c); err != nil {
		b.t.Fatal(err)
	}
}

// secret writes the kubeconfig Secret and does what its watch event does.
func (b *bench) secret(kubeconfig []byte) {
	b.t.Helper()
	s := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name + "-kubeconfig",
		Labels: map[string]string{clusterv1.ClusterNameLabel: key.Name}}, Data: map[string][]byte{"value": kubeconfig}}
	_ = b.mgmt.Delete(context.Background(), s.DeepCopy())
	if err := b.mgmt.Create(context.Background(), s); err != nil {
		b.t.Fatal(err)
	}
	if got := b.clusters.secretToCluster(context.Background(), s); len(got) != 1 || got[0].NamespacedName != key {
		b.t.Fatalf("the Secret's event asks for %v", got)
	}
}

func (b *bench) connected(a *api) {
	b.t.Helper()
	b.provision()
	b.secret(a.kubeconfig("one"))
	b.reconcile()
	if h := b.clusters.Health(key); !h.Connected {
		b.t.Fatalf("not connected: %+v", h)
	}
	b.drain()
}

// drain empties the queue and returns how many requests there were.
func (b *bench) drain() int {
	n := 0
	for b.queue.Len() > 0 {
		item, _ := b.queue.Get()
		b.queue.Done(item)
		n++
	}
	return n
}

// woken takes a request from the queue, if there is one, and tells whether it is about the Node.
func (b *bench) woken(node string) bool {
	if b.queue.Len() == 0 {
		return false
	}
	item, _ := b.queue.Get()
	b.queue.Done(item)
	return item.Namespace == "node" && item.Name == node
}

// eventually polls a fact about a real server or informer.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	deadline := time.After(20 * time.Second)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !ok() {
		select {
		case <-deadline:
			t.Fatalf("not within 20 s: %s", what)
		case <-tick.C:
		}
	}
}

// RC-06 is Config: QPS, Burst, Concurrency, Timing.CallTimeout; its defaults are checked here.
func TestDefaults(t *testing.T) {
	c := Config{}.withDefaults()
	if c.QPS != 100 || c.Burst != 200 || c.Concurrency != 100 || c.Timing.CallTimeout != 10*time.Second {
		t.Errorf("%+v", c)
	}
}

func TestConnect(t *testing.T) { // RC-01, RC-04
	a := newAPI(t)
	b := newBench(t, nil)
	if r := b.reconcile(); r.RequeueAfter != 0 {
		t.Errorf("before the infrastructure is provisioned a watch wakes us, not %s", r.RequeueAfter)
	}
	_, err := b.clusters.Client(context.Background(), key)
	if !errors.Is(err, ErrNotConnected) || fault.KindOf(err) != fault.Unreachable {
		t.Errorf("Client before connecting: %v", err)
	}
	b.provision()
	if r := b.reconcile(); r.RequeueAfter != 30*time.Second {
		t.Errorf("without a Secret: look again after %s", r.RequeueAfter)
	}
	b.secret(a.kubeconfig("one"))
	if r := b.reconcile(); r.RequeueAfter != 10*time.Second {
		t.Errorf("connected: next probe after %s", r.RequeueAfter)
	}
	if n := b.drain(); n != 1 {
		t.Errorf("connecting woke the controller %d times", n)
	}
	want := Health{Connected: true, Since: t0, LastProbeSuccess: t0}
	if diff := cmp.Diff(want, b.clusters.Health(key)); diff != "" {
		t.Errorf("health (-want +got):\n%s", diff)
	}
	if _, err := b.clusters.Client(context.Background(), key); err != nil {
		t.Errorf("Client: %v", err)
	}
}

func TestRetriesUntilTheAPIAnswers(t *testing.T) { // RC-01
	a := newAPI(t)
	a.set(func(a *api) { a.status = 503 })
	b := newBench(t, nil)
	b.provision()
	b.secret(a.kubeconfig("one"))
	if r := b.reconcile(); r.RequeueAfter != 250*time.Millisecond {
		t.Errorf("first retry after %s", r.RequeueAfter)
	}
	_, err := b.clusters.Client(context.Background(), key)
	if !errors.Is(err, ErrNotConnected) || !strings.Contains(fault.UserMessage(err), "503") {
		t.Errorf("the error does not say why: %v", err)
	}
	if n := b.drain(); n != 1 {
		t.Errorf("a first failure woke the controller %d times", n)
	}
	b.clock.SetTime(t0.Add(40 * time.Second))
	if r := b.reconcile(); r.RequeueAfter != 5*time.Second {
		t.Errorf("after 40 s: retry after %s", r.RequeueAfter)
	}
	if n := b.drain(); n != 0 {
		t.Errorf("the same failure again woke the controller %d times", n)
	}
	a.set(func(a *api) { a.status = 0 })
	b.clock.SetTime(t0.Add(45 * time.Second))
	b.reconcile()
	if h := b.clusters.Health(key); !h.Connected || h.ConsecutiveFailures != 0 || h.Problem != "" {
		t.Errorf("the API answers again: %+v", h)
	}
}

func TestProbeFailuresDisconnect(t *testing.T) { // RC-02, RC-08
	a := newAPI(t)
	b := newBench(t, nil)
	b.connected(a)
	ctx := context.Background()
	if err := b.clusters.Watch(ctx, key, nodeWatch()); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the Nodes are watched", func() bool { return a.watching() == 1 })
	a.set(func(a *api) { a.status = 500 })
	for i := 1; i <= 5; i++ {
		b.clock.SetTime(t0.Add(time.Duration(i) * 10 * time.Second))
		b.reconcile()
		h := b.clusters.Health(key)
		if h.Connected != (i < 5) || h.ConsecutiveFailures != i || !h.LastProbeSuccess.Equal(t0) {
			t.Fatalf("after %d failures: %+v", i, h)
		}
		if woken, want := b.drain(), map[int]int{1: 1, 5: 1}[i]; woken != want {
			t.Errorf("failure %d woke the controller %d times, want %d", i, woken, want)
		}
	}
	eventually(t, "the watches end with the connection", func() bool { return a.watching() == 0 })
	if err := b.clusters.Watch(ctx, key, nodeWatch()); !errors.Is(err, ErrNotConnected) {
		t.Errorf("Watch: %v", err)
	}
	if _, err := b.clusters.Nodes(ctx, key, "x"); !errors.Is(err, ErrNotConnected) {
		t.Errorf("Nodes: %v", err)
	}
	want := `
# HELP capi_cluster_cache_connection_up 1 while the workload cluster is connected, otherwise 0.
# TYPE capi_cluster_cache_connection_up gauge
capi_cluster_cache_connection_up{cluster_name="c1",cluster_namespace="ns"} 0
# HELP capi_cluster_cache_healthcheck 1 when the last probe of the workload cluster's API succeeded, otherwise 0.
# TYPE capi_cluster_cache_healthcheck gauge
capi_cluster_cache_healthcheck{cluster_name="c1",cluster_namespace="ns"} 0
# HELP capi_cluster_cache_healthchecks_total Probes of the workload cluster's API by result.
# TYPE capi_cluster_cache_healthchecks_total counter
capi_cluster_cache_healthchecks_total{cluster_name="c1",cluster_namespace="ns",status="error"} 5
capi_cluster_cache_healthchecks_total{cluster_name="c1",cluster_namespace="ns",status="success"} 1
`
	if err := testutil.GatherAndCompare(b.registry, strings.NewReader(want)); err != nil {
		t.Error(err)
	}
}

func TestHangingProbeTimesOut(t *testing.T) { // RC-02
	a := newAPI(t)
	b := newBench(t, nil)
	b.connected(a)
	b.clusters.cfg.Timing.ProbeTimeout = 50 * time.Millisecond
	a.mu.Lock() // every handler hangs
	b.clock.SetTime(t0.Add(10 * time.Second))
	b.reconcile()
	a.mu.Unlock()
	if h := b.clusters.Health(key); h.ConsecutiveFailures != 1 || !h.Connected || !strings.Contains(h.Problem, "does not respond as") {
		t.Errorf("%+v", h)
	}
}

func TestIdleProbeReadsNoSecret(t *testing.T) { // RC-02: the probing of idle clusters is cheap
	a := newAPI(t)
	b := newBench(t, nil)
	b.connected(a)
	if err := b.mgmt.Delete(context.Background(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "c1-kubeconfig"}}); err != nil {
		t.Fatal(err)
	}
	before, after := 0, 0
	a.set(func(a *api) { before = a.probes })
	b.clock.SetTime(t0.Add(10 * time.Second))
	b.reconcile()
	b.reconcile() // woken by something else: no second probe
	a.set(func(a *api) { after = a.probes })
	if after != before+1 {
		t.Errorf("%d probes, want 1", after-before)
	}
	if n := b.drain(); n != 0 {
		t.Errorf("an idle cluster woke the controller %d times", n)
	}
}

func TestRotation(t *testing.T) { // RC-03
	a := newAPI(t)
	b := newBench(t, nil)
	b.connected(a)
	old, _ := b.clusters.connection(key)
	b.secret(a.kubeconfig("one"))
	b.reconcile()
	if same, _ := b.clusters.connection(key); same != old {
		t.Error("the same content made a new connection")
	}
	a.set(func(a *api) { a.token = "two" })
	b.secret(a.kubeconfig("two"))
	b.reconcile()
	renewed, err := b.clusters.connection(key)
	if err != nil || renewed == old {
		t.Errorf("a new kubeconfig did not make a new connection: %v", err)
	}
	if n := b.drain(); n != 1 {
		t.Errorf("reconnecting woke the controller %d times", n)
	}
}

func TestRefusedCredentials(t *testing.T) { // RC-03
	a := newAPI(t)
	b := newBench(t, nil)
	b.connected(a)
	a.set(func(a *api) { a.token = "two" })
	b.clock.SetTime(t0.Add(10 * time.Second))
	b.reconcile()
	if h := b.clusters.Health(key); h.Connected || !strings.Contains(h.Problem, "credentials") {
		t.Errorf("refused credentials end the connection at once: %+v", h)
	}
	b.secret(a.kubeconfig("two"))
	b.reconcile()
	if h := b.clusters.Health(key); !h.Connected {
		t.Errorf("the renewed Secret is used at once: %+v", h)
	}
}

func nodeWatch() WatchRequest {
	return WatchRequest{Controller: "machine", Kind: &corev1.Node{}, Map: func(_ context.Context, o client.Object) []reconcile.Request {
		return []reconcile.Request{{NamespacedName: client.ObjectKey{Namespace: "node", Name: o.GetName()}}}
	}}
}

func TestWatchAndNodes(t *testing.T) { // RC-07: caches what is watched; slim; one watch per kind
	a := newAPI(t)
	a.add(node("n1", "p://1"))
	b := newBench(t, nil)
	b.connected(a)
	ctx := context.Background()
	c, err := b.clusters.Client(ctx, key)
	if err != nil {
		t.Fatal(err)
	}
	var live corev1.Node
	if err := c.Get(ctx, client.ObjectKey{Name: "n1"}, &live); err != nil || len(live.Status.Images) != 1 {
		t.Errorf("a kind that nobody watches is read live: %v", err)
	}
	if a.watching() != 0 {
		t.Error("a read began a watch")
	}
	for range 2 {
		if err := b.clusters.Watch(ctx, key, nodeWatch()); err != nil {
			t.Fatal(err)
		}
	}
	nodes, err := b.clusters.Nodes(ctx, key, "p://1")
	if err != nil || len(nodes) != 1 || nodes[0].Name != "n1" || nodes[0].ManagedFields != nil || nodes[0].Status.Images != nil {
		t.Errorf("Nodes: %v, %+v", err, nodes)
	}
	eventually(t, "the Nodes are watched", func() bool { return a.watching() == 1 })
	eventually(t, "the first Node reaches the queue", func() bool { return b.woken("n1") })
	a.add(node("n2", "p://2"))
	eventually(t, "the second Node reaches the queue", func() bool { return b.woken("n2") })
	eventually(t, "the second Node is indexed", func() bool {
		nodes, err := b.clusters.Nodes(ctx, key, "p://2")
		return err == nil && len(nodes) == 1
	})
	lists := 0
	a.set(func(a *api) { lists = a.lists })
	if lists != 1 || a.watching() != 1 {
		t.Errorf("%d lists and %d watches for one kind", lists, a.watching())
	}
	w := nodeWatch()
	w.Controller = "nobody"
	if err := b.clusters.Watch(ctx, key, w); err == nil {
		t.Error("a controller without a queue cannot watch")
	}
}

func TestForget(t *testing.T) { // RC-08: series end with the Cluster
	a := newAPI(t)
	b := newBench(t, nil)
	b.connected(a)
	if err := b.mgmt.Delete(context.Background(), &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "c1"}}); err != nil {
		t.Fatal(err)
	}
	b.reconcile()
	if n, err := testutil.GatherAndCount(b.registry); err != nil || n != 0 {
		t.Errorf("%d series left, %v", n, err)
	}
	if diff := cmp.Diff(Health{}, b.clusters.Health(key)); diff != "" {
		t.Errorf("health (-want +got):\n%s", diff)
	}
	if _, err := b.clusters.Client(context.Background(), key); !errors.Is(err, ErrNotConnected) {
		t.Errorf("Client: %v", err)
	}
}

func TestSelfHosted(t *testing.T) { // RC-05
	outside, inside := newAPI(t), newAPI(t)
	outside.podUID = "u1"
	env := map[string]string{"POD_NAMESPACE": "slipway", "POD_NAME": "manager", "POD_UID": "u1"}
	inCluster := func() (*rest.Config, error) {
		cfg, err := ParseKubeconfig(inside.kubeconfig("one"), policy.Default())
		return cfg, err
	}
	self, err := SelfFromEnvironment(func(k string) string { return env[k] }, inCluster)
	if err != nil || self == nil {
		t.Fatalf("%v, %v", self, err)
	}
	if _, err := SelfFromEnvironment(func(k string) string { return env[k] }, nil); !errors.Is(err, rest.ErrNotInCluster) {
		t.Errorf("the variables are set and this is no Pod: %v", err)
	}
	if none, err := SelfFromEnvironment(func(string) string { return "" }, inCluster); none != nil || err != nil {
		t.Errorf("outside of a Pod: %v, %v", none, err)
	}
	b := newBench(t, func(c *Config) { c.Self = self })
	b.connected(outside)
	conn, _ := b.clusters.connection(key)
	if !strings.HasPrefix(conn.address, inside.server.URL) {
		t.Errorf("the own cluster is reached at %s, want the in-cluster address %s", conn.address, inside.server.URL)
	}
	self.UID = "other"
	b = newBench(t, func(c *Config) { c.Self = self })
	b.connected(outside)
	conn, _ = b.clusters.connection(key)
	if !strings.HasPrefix(conn.address, outside.server.URL) {
		t.Errorf("another cluster is reached at %s, want %s", conn.address, outside.server.URL)
	}
}

func TestStalledCache(t *testing.T) { // RC-01: initial cache sync timeout
	a := newAPI(t)
	b := newBench(t, func(c *Config) { c.Timing.CallTimeout = 50 * time.Millisecond })
	b.connected(a)
	a.set(func(a *api) { a.stuck = true }) // lists of Nodes fail
	if _, err := b.clusters.Nodes(context.Background(), key, "p://1"); !errors.Is(err, ErrNotConnected) {
		t.Errorf("a cache that does not fill: %v", err)
	}
	b.clock.SetTime(t0.Add(5*time.Minute + time.Second))
	b.reconcile()
	if h := b.clusters.Health(key); h.Connected || !strings.Contains(h.Problem, "did not sync") {
		t.Errorf("%+v", h)
	}
}
