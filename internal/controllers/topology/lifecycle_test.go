package topology

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/slipwayhq/slipway/internal/hook"
	"github.com/slipwayhq/slipway/internal/kube"
	"github.com/slipwayhq/slipway/internal/machines/clone"
	"github.com/slipwayhq/slipway/internal/reconciler"
	"github.com/slipwayhq/slipway/internal/topology"
	"github.com/slipwayhq/slipway/internal/topology/lifecycle"
	"github.com/slipwayhq/slipway/sdk/hooks"
	"github.com/slipwayhq/slipway/test/hooktest"
	"github.com/slipwayhq/slipway/test/testkit"
)

// lifecycleHooks are those that are called for a Cluster with a topology.
var lifecycleHooks = []string{
	"BeforeClusterCreate", "AfterControlPlaneInitialized", "BeforeClusterUpgrade", "BeforeControlPlaneUpgrade", "AfterControlPlaneUpgrade",
	"BeforeWorkersUpgrade", "AfterWorkersUpgrade", "AfterClusterUpgrade", "BeforeClusterDelete",
}

// extension is a server written in any language: it answers each hook with literal bytes, and blocks each question a number of times.
type extension struct {
	*hooktest.Extension
	blocks int

	mu    sync.Mutex
	asked map[string]int
	// calls are the questions that were let go, in order.
	calls []string
}

func startExtension(t *testing.T, blocks int) *extension {
	x := &extension{Extension: hooktest.Start(t, hooktest.Options{}), blocks: blocks, asked: map[string]int{}}
	for _, name := range lifecycleHooks {
		x.Handle(hooktest.Handler(strings.ToLower(name), name), x.answer(name))
	}
	return x
}

func (x *extension) answer(name string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		bodies := x.Bodies(r.URL.Path)
		var request struct {
			From string                    `json:"fromKubernetesVersion"`
			To   string                    `json:"toKubernetesVersion"`
			At   string                    `json:"kubernetesVersion"`
			CP   []clusterv1.StatusVersion `json:"controlPlaneUpgrades"`
			W    []clusterv1.StatusVersion `json:"workersUpgrades"`
		}
		if err := json.Unmarshal(bodies[len(bodies)-1], &request); err != nil {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		question := strings.TrimSpace(fmt.Sprintf("%s %s%s%s", name, request.From, map[bool]string{true: "→"}[request.From != ""], request.To+request.At))
		for _, list := range [][]clusterv1.StatusVersion{request.CP, request.W} {
			if request.To+request.At != "" {
				question += " " + versionsIn(list)
			}
		}
		x.mu.Lock()
		defer x.mu.Unlock()
		x.asked[question]++
		if x.asked[question] <= x.blocks && name != "AfterControlPlaneInitialized" {
			_, _ = io.WriteString(w, `{"status":"Success","message":"wait for it","retryAfterSeconds":5}`)
			return
		}
		x.calls = append(x.calls, question)
		_, _ = io.WriteString(w, `{"status":"Success"}`)
	}
}

func versionsIn(list []clusterv1.StatusVersion) string {
	out := []string{}
	for _, v := range list {
		out = append(out, strings.TrimSuffix(strings.TrimPrefix(v.Version, "v1."), ".0"))
	}
	return fmt.Sprint(out)
}

func (x *extension) released() []string {
	x.mu.Lock()
	defer x.mu.Unlock()
	return slices.Clone(x.calls)
}

// upgrading is a world with an extension and with providers, both played, and a clock.
type upgrading struct {
	world
	x   *extension
	now time.Time
	// blocked are the conditions that named a hook, each once.
	blocked []string
	// plans are the upgrade plans that the status had, each once.
	plans []string
}

func newUpgrading(t *testing.T, c client.WithWatch, x *extension) *upgrading {
	u := &upgrading{x: x, now: now()}
	u.world = world{t: t, WithWatch: c}
	u.start()
	return u
}

// start is the start of a manager: it remembers nothing.
func (u *upgrading) start() {
	u.t.Helper()
	clock := func() time.Time { return u.now }
	registry, err := hook.New(hook.Config{Now: clock, NamespaceLabels: func(context.Context, string) (labels.Set, error) { return nil, nil }})
	u.must(err)
	registry.Prime()
	if state, err := registry.Discover(context.Background(), u.x.ExtensionConfig("ext")); err != nil || state.Problem != nil {
		u.t.Fatal(err, state.Problem)
	}
	ctl := &controller{client: u, live: u, used: clone.NewUsage(u), refs: kube.NewReferences(u, nil), classes: topology.NewClasses(), extensions: registry, now: clock}
	u.r = &reconciler.Reconciler[*clusterv1.Cluster, snapshot]{Controller: ctl.definition(), Client: u, Writer: kube.NewWriter(u, Name), Now: clock}
	ctl.writer, ctl.applier = u.r.Writer, u.r.Writer.WithManager(fieldManager)
}

// run reconciles, plays the providers and lets time pass until done. After a failed write the manager starts again.
func (u *upgrading) run(done func() bool) {
	u.t.Helper()
	for range 800 {
		result, err := u.reconcile()
		if err != nil {
			u.start()
		}
		u.identify()
		if c := u.condition(); strings.Contains(c, "blocking") && !slices.Contains(u.blocked, c) {
			u.blocked = append(u.blocked, c)
		}
		if plan := u.plan(); len(u.plans) == 0 || u.plans[len(u.plans)-1] != plan {
			u.plans = append(u.plans, plan)
		}
		if u.checkSkew(); done() {
			return
		}
		if !u.play() && result.RequeueAfter > 0 {
			u.now = u.now.Add(result.RequeueAfter)
		}
	}
	u.t.Fatalf("does not end: %s, %v, %v", u.condition(), u.cluster().Annotations, u.x.released())
}

// plan is what the status of the Cluster says is still to come.
func (u *upgrading) plan() string {
	status, lists := u.cluster().Status, [2][]clusterv1.StatusVersion{}
	for i, list := range [][]clusterv1.StatusUpgradePlanVersion{
		ptr.Deref(status.ControlPlane, clusterv1.ClusterControlPlaneStatus{}).UpgradePlan, ptr.Deref(status.Workers, clusterv1.WorkersStatus{}).UpgradePlan,
	} {
		for _, step := range list {
			lists[i] = append(lists[i], clusterv1.StatusVersion{Version: step.Version})
		}
	}
	return versionsIn(lists[0]) + versionsIn(lists[1])
}

// play does one thing that providers do, and reports whether there was one to do.
func (u *upgrading) play() bool {
	for _, o := range u.objects() {
		switch o := o.(type) {
		case *unstructured.Unstructured:
			version, _, _ := unstructured.NestedString(o.Object, "spec", "version")
			running, _, _ := unstructured.NestedString(o.Object, "status", "version")
			if o.GetKind() == "Plane" && version != running {
				u.update(o, func(o client.Object) {
					status := map[string]any{"version": version, "replicas": int64(3)}
					o.(*unstructured.Unstructured).Object["status"] = status
				})
				return true
			}
		case *clusterv1.MachineDeployment:
			want := []clusterv1.StatusVersion{{Version: o.Spec.Template.Spec.Version, Replicas: 2}}
			if !cmp.Equal(o.Status.Versions, want) {
				u.updateStatus(o, func(o client.Object) { o.(*clusterv1.MachineDeployment).Status.Versions = want })
				return true
			}
		case *clusterv1.MachinePool:
			want := []clusterv1.StatusVersion{{Version: o.Spec.Template.Spec.Version, Replicas: 1}}
			if !cmp.Equal(o.Status.Versions, want) {
				u.update(o, func(o client.Object) { o.(*clusterv1.MachinePool).Status.Versions = want })
				return true
			}
		}
	}
	cluster := u.cluster()
	// The fake client forgets conditions of others when a condition is applied.
	if strings.Contains(cluster.Annotations["runtime.cluster.x-k8s.io/pending-hooks"], "Initialized") && cluster.Spec.ControlPlaneRef.IsDefined() {
		u.updateStatus(cluster, func(o client.Object) {
			c := o.(*clusterv1.Cluster)
			c.Status.Conditions = append(c.Status.Conditions, metav1.Condition{
				Type: clusterv1.ClusterControlPlaneInitializedCondition, Status: metav1.ConditionTrue, Reason: "Initialized", LastTransitionTime: metav1.NewTime(now()),
			})
		})
		return true
	}
	return false
}

func (u *upgrading) updateStatus(o client.Object, f func(client.Object)) {
	u.t.Helper()
	for {
		u.must(u.Get(context.Background(), client.ObjectKeyFromObject(o), o))
		f(o)
		if err := u.Status().Update(context.Background(), o); err == nil {
			return
		}
	}
}

// checkSkew: no worker has a newer version than the control plane runs, or one that is more than three minor versions older.
func (u *upgrading) checkSkew() {
	u.t.Helper()
	minor := func(v string) (n int) {
		_, _ = fmt.Sscanf(v, "v1.%d.", &n)
		return n
	}
	var plane *unstructured.Unstructured
	var workers []string
	for _, o := range u.objects() {
		switch o := o.(type) {
		case *unstructured.Unstructured:
			if o.GetKind() == "Plane" {
				plane = o
			}
		case *clusterv1.MachineDeployment:
			workers = append(workers, o.Spec.Template.Spec.Version)
			for _, v := range o.Status.Versions {
				workers = append(workers, v.Version)
			}
		}
	}
	if plane == nil {
		return
	}
	spec, _, _ := unstructured.NestedString(plane.Object, "spec", "version")
	running, _, _ := unstructured.NestedString(plane.Object, "status", "version")
	for _, w := range workers {
		if running != "" && minor(w) > minor(running) || minor(spec) > minor(w)+3 {
			u.t.Fatalf("a worker of %s with a control plane of %s that becomes %s", w, running, spec)
		}
	}
}

// reconciled reports whether the topology is what it should be and nothing is recorded any more.
func (u *upgrading) reconciled() bool {
	annotations := u.cluster().Annotations
	delete(annotations, lifecycle.WorkersAnnotation) // stays
	return u.condition() == "True ReconcileSucceeded" && len(annotations) == 0
}

var wholeLife = []string{
	"BeforeClusterCreate", "AfterControlPlaneInitialized",
	"BeforeClusterUpgrade v1.33.0→v1.37.0 [34 35 36 37] [36 37]",
	"BeforeControlPlaneUpgrade v1.33.0→v1.34.0 [34 35 36 37] [36 37]", "AfterControlPlaneUpgrade v1.34.0 [35 36 37] [36 37]",
	"BeforeControlPlaneUpgrade v1.34.0→v1.35.0 [35 36 37] [36 37]", "AfterControlPlaneUpgrade v1.35.0 [36 37] [36 37]",
	"BeforeControlPlaneUpgrade v1.35.0→v1.36.0 [36 37] [36 37]", "AfterControlPlaneUpgrade v1.36.0 [37] [36 37]",
	"BeforeWorkersUpgrade v1.33.0→v1.36.0 [37] [36 37]", "AfterWorkersUpgrade v1.36.0 [37] [37]",
	"BeforeControlPlaneUpgrade v1.36.0→v1.37.0 [37] [37]", "AfterControlPlaneUpgrade v1.37.0 [] [37]",
	"BeforeWorkersUpgrade v1.36.0→v1.37.0 [] [37]", "AfterWorkersUpgrade v1.37.0 [] []",
	"AfterClusterUpgrade v1.37.0 [] []", "BeforeClusterDelete",
}

// oneStep is the same with one minor version.
var oneStep = []string{
	"BeforeClusterCreate", "AfterControlPlaneInitialized",
	"BeforeClusterUpgrade v1.33.0→v1.34.0 [34] [34]", "BeforeControlPlaneUpgrade v1.33.0→v1.34.0 [34] [34]", "AfterControlPlaneUpgrade v1.34.0 [] [34]",
	"BeforeWorkersUpgrade v1.33.0→v1.34.0 [] [34]", "AfterWorkersUpgrade v1.34.0 [] []", "AfterClusterUpgrade v1.34.0 [] []", "BeforeClusterDelete",
}

func lifeWorld() *fake.ClientBuilder {
	cluster, class := newCluster(), newClass()
	cluster.Spec.Topology.Version = "v1.33.0"
	class.Spec.KubernetesVersions = []string{"v1.33.0", "v1.34.0", "v1.35.0", "v1.36.0", "v1.37.0"}
	cluster.Finalizers = []string{clusterv1.ClusterFinalizer}
	return management(cluster, class)
}

// live lets a Cluster be created, upgraded and deleted.
func (u *upgrading) live(target string) {
	u.t.Helper()
	u.run(u.reconciled)
	u.change(func(c *clusterv1.Cluster) { c.Spec.Topology.Version = target })
	u.run(func() bool {
		return u.reconciled() && valueAt(u.t, u.one("Plane", "c-"), "spec", "version") == target
	})
	for {
		if err := u.Delete(context.Background(), u.cluster()); err == nil {
			break
		}
	}
	u.run(func() bool { _, ok := u.cluster().Annotations["runtime.cluster.x-k8s.io/ok-to-delete"]; return ok })
}

func TestHooksBlockAndLetGo(t *testing.T) { // LH-01 to LH-09, LH-17, LH-18, TP-22, TP-25, TP-27
	u := newUpgrading(t, lifeWorld().WithReturnManagedFields().Build(), startExtension(t, 2))
	u.live("v1.37.0")
	if diff := cmp.Diff(wholeLife, u.x.released()); diff != "" {
		t.Errorf("hooks in the order in which they let go (-want +got):\n%s", diff)
	}
	for question, times := range u.x.asked {
		if want := 3; times != want && question != "AfterControlPlaneInitialized" {
			t.Errorf("%s was called %d times, want %d", question, times, want)
		}
	}
	for _, name := range lifecycleHooks {
		named := slices.ContainsFunc(u.blocked, func(c string) bool {
			return strings.Contains(c, name+": handler "+strings.ToLower(name)+".ext: wait for it")
		})
		if !named && name != "AfterControlPlaneInitialized" {
			t.Errorf("no condition says that %s blocks: %q", name, u.blocked)
		}
	}
	plans := []string{
		"[][]", "[34 35 36 37][36 37]", "[35 36 37][36 37]", "[36 37][36 37]", "[37][36 37]", "[37][37]", "[][37]", "[][]",
	}
	if diff := cmp.Diff(plans, u.plans); diff != "" {
		t.Errorf("plans in the status (-want +got):\n%s", diff)
	}
	bodies := u.x.Bodies(hooks.ID{Name: hooks.Name{Group: hooks.Group, Hook: "BeforeClusterUpgrade"}, Version: "v1alpha1"}.Path("beforeclusterupgrade"))
	if len(bodies) == 0 || strings.Contains(string(bodies[0]), "managedFields") || strings.Contains(string(bodies[0]), `"status"`) {
		t.Errorf("the request has what it should not: %s", bodies)
	}
}

// TestKilledAtEveryWrite: the manager dies at each of its writes, and the next one remembers nothing: each hook lets go what it is about
// once, in order, and no object is created twice.
func TestKilledAtEveryWrite(t *testing.T) { // LH-11, TP-03, TP-30
	var want []string
	testkit.FailEachWrite(t, lifeWorld, func(t *testing.T, c client.WithWatch) {
		u := newUpgrading(t, c, startExtension(t, 0))
		u.live("v1.34.0")
		got := u.x.released()
		if len(got) > len(oneStep)+1 {
			t.Errorf("more than one call is repeated: %v", got)
		}
		if diff := cmp.Diff(oneStep, slices.Compact(got)); diff != "" {
			t.Errorf("hooks (-want +got):\n%s", diff)
		}
		if want == nil {
			want = u.names()
		}
		if len(want) != len(u.names()) {
			t.Errorf("objects %v, want as many as %v", u.names(), want)
		}
	})
}

// TestHookFails: an extension that fails holds back the upgrade and nothing else, with one message also when it is not called any more.
func TestHookFails(t *testing.T) { // LH-14, LH-17, TP-20, TP-23
	u := newUpgrading(t, lifeWorld().WithReturnManagedFields().Build(), startExtension(t, 0))
	u.run(u.reconciled)
	path := hooks.ID{Name: hooks.Name{Group: hooks.Group, Hook: "BeforeClusterUpgrade"}, Version: "v1alpha1"}.Path("beforeclusterupgrade")
	u.x.Serve(path, hooktest.Status(http.StatusInternalServerError))
	u.change(func(c *clusterv1.Cluster) {
		c.Spec.Topology.Version = "v1.34.0"
		c.Spec.Topology.ControlPlane.HealthCheck.Checks.NodeStartupTimeoutSeconds = new(int32(77))
		c.Spec.Topology.Workers.MachineDeployments[0].Replicas = new(int32(5))
	})
	said := map[string]bool{}
	for range 12 {
		_, err := u.reconcile()
		if err != nil {
			t.Fatal(err)
		}
		said[u.condition()] = true
	}
	if len(said) != 1 || !strings.HasPrefix(u.condition(), "False ReconcileFailed * Hook BeforeClusterUpgrade failed: handler beforeclusterupgrade.ext: ") ||
		!strings.Contains(u.condition(), "HTTP 500 Internal Server Error: correct the extension, or spec.clientConfig of ExtensionConfig ext if it refers to another server; retrying\n* Plane ") {
		t.Errorf("conditions %v", said)
	}
	if calls := len(u.x.Bodies(path)); calls != 5 {
		t.Errorf("%d calls, want 5 until the circuit opens", calls)
	}
	md := u.one("MachineDeployment", "c-a-")
	if replicas := valueAt(t, md, "spec", "replicas"); replicas != int64(2) {
		t.Errorf("a worker that waits for its upgrade was changed: %v replicas", replicas)
	}
	check := u.one("MachineHealthCheck", u.one("Plane", "c-").GetName())
	if seconds := valueAt(t, check, "spec", "checks", "nodeStartupTimeoutSeconds"); seconds != int64(77) {
		t.Errorf("the health check was not changed: %v", seconds)
	}
	u.x.Serve(path, u.x.answer("BeforeClusterUpgrade"))
	u.now = u.now.Add(time.Hour)
	u.run(func() bool {
		return u.reconciled() && valueAt(t, u.one("MachineDeployment", "c-a-"), "spec", "template", "spec", "version") == "v1.34.0"
	})
	if replicas := valueAt(t, u.one("MachineDeployment", "c-a-"), "spec", "replicas"); replicas != int64(5) {
		t.Errorf("what waited was not changed with the upgrade: %v replicas", replicas)
	}
}

// Nothing of the topology is created, and no status is written, before the Cluster has its finalizer: the Cluster could be
// deleted meanwhile.
func TestNothingBeforeTheFinalizer(t *testing.T) {
	w := newWorld(t, management(newCluster(), newClass()).WithReturnManagedFields().Build())
	if _, err := w.r.Reconcile(t.Context(), ctrl.Request{NamespacedName: key}); err != nil {
		t.Fatal(err)
	}
	if names := w.names(); len(names) != 0 || w.condition() != "" {
		t.Errorf("created %v, condition %q", names, w.condition())
	}
	w.settle()
	if len(w.names()) == 0 {
		t.Error("nothing was created with the finalizer")
	}
}
