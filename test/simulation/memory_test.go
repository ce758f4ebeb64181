package simulation

import (
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/slipwayhq/slipway/internal/admission"
	"github.com/slipwayhq/slipway/internal/kube"
	"github.com/slipwayhq/slipway/internal/manager/crds"
	"github.com/slipwayhq/slipway/internal/manager/webhook"
	"github.com/slipwayhq/slipway/internal/plan/memory"
	"github.com/slipwayhq/slipway/internal/plan/world"
	"github.com/slipwayhq/slipway/internal/policy"
	"github.com/slipwayhq/slipway/internal/reconciler"
	"github.com/slipwayhq/slipway/sdk/contract"
)

func TestMain(m *testing.M) {
	ctrllog.SetLogger(logr.Discard())
	os.Exit(m.Run())
}

// beginning is when the simulations begin.
func beginning() time.Time { return time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC) }

// kinds are those of this build; their schemas are compiled once for all tests.
var kinds = sync.OnceValues(func() (*memory.Kinds, error) {
	all, err := crds.All()
	return memory.NewKinds(all, func(crd *apiextensionsv1.CustomResourceDefinition) string {
		_, version, err := contract.Resolve(crd.Name, crd.Labels)
		if err != nil {
			return ""
		}
		return version
	}), err
})

// management is a management cluster in memory with the controllers of this build. The test chooses which of the
// requests that events have enqueued is reconciled next, so that every order can be played. Time passes when the test
// lets it.
type management struct {
	t   *testing.T
	rng *rand.Rand // nil: fixed order
	client.Client
	world     *world.World
	workloads *world.Workloads
	queues    []*heldQueue
	// planned is called with the plan of every reconciliation.
	planned func(by reconciler.PlanKey, p reconciler.Plan)
}

// newManagement returns a management cluster without controllers and objects.
func newManagement(t *testing.T, rng *rand.Rand) *management {
	t.Helper()
	all, err := kinds()
	if err != nil {
		t.Fatal(err)
	}
	m := &management{t: t, rng: rng, planned: func(reconciler.PlanKey, reconciler.Plan) {}}
	scheme := newScheme(t)
	m.world = world.New(world.Options{
		Options: memory.Options{Scheme: scheme, Kinds: all, Admission: func(live client.Reader) memory.Admission {
			return webhook.NewInProcessAdmission(webhook.Options{Gates: admission.Gates{MachineTaintPropagation: true}, Policy: policy.Default(), Live: live})
		}},
		Now: beginning(), Transform: kube.PruneManagedFields, Plans: m,
	})
	for _, crd := range all.CRDs() {
		u := &unstructured.Unstructured{}
		u.SetGroupVersionKind(kube.CRDKind())
		u.SetName(crd.Name)
		u.SetLabels(crd.Labels)
		m.must(m.world.API.Load(u))
	}
	m.Client, m.workloads = m.world.Client(), world.NewWorkloads(m.world, scheme)
	return m
}

func (m *management) must(err error) {
	m.t.Helper()
	if err != nil {
		m.t.Fatal(err)
	}
}

// run starts controllers.
func (m *management) run(add func(reconciler.Setup) error) {
	m.t.Helper()
	setup := m.world.Setup()
	queue := setup.Environment.Queue
	setup.Environment.Queue = func(name string, limiter workqueue.TypedRateLimiter[reconcile.Request]) workqueue.TypedRateLimitingInterface[reconcile.Request] {
		q := &heldQueue{TypedRateLimitingInterface: queue(name, limiter), now: m.world.Now, at: map[reconcile.Request]time.Time{}}
		m.queues = append(m.queues, q)
		return q
	}
	m.must(add(setup))
	m.must(m.world.Start(m.t.Context()))
	m.proceed()
}

// proceed reconciles what was released, and delivers all events.
func (m *management) proceed() {
	m.t.Helper()
	m.must(m.world.Proceed(m.t.Context()))
}

// pass lets time go by. Requests that were to be reconciled later are due then.
func (m *management) pass(d time.Duration) {
	m.t.Helper()
	m.world.After(d, "pass", func() {})
	_, err := m.world.Settle(m.t.Context(), world.Limits{Reconciliations: 1, Time: d, Quiet: d})
	m.must(err)
}

// requests lists the reconciliations that are due, in the order of the controllers and of names.
func (m *management) requests() []func() {
	var out []func()
	for _, q := range m.queues {
		for _, r := range q.due() {
			out = append(out, func() {
				q.release(r)
				m.proceed()
			})
		}
	}
	return out
}

// pick returns the next of several things that can happen: the first one, or any.
func (m *management) pick(steps []func()) func() {
	if m.rng == nil {
		return steps[0]
	}
	return steps[m.rng.IntN(len(steps))]
}

// play writes an object with its status as a component does that is not simulated, and delivers the events of that.
func play[O client.Object](m *management, o O, f func(O)) {
	m.t.Helper()
	f(o)
	gvk, err := m.GroupVersionKindFor(o)
	m.must(err)
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
	m.must(err)
	u := &unstructured.Unstructured{Object: content}
	u.SetGroupVersionKind(gvk)
	m.must(m.world.API.WriteAsSystem(u, "test"))
	m.proceed()
}

// all returns the objects of a kind by name.
func all[T any, O interface {
	*T
	client.Object
}](m *management) []O {
	m.t.Helper()
	o := O(new(T))
	gvk, err := m.GroupVersionKindFor(o)
	m.must(err)
	var out []O
	for _, u := range m.world.API.OfKind(gvk.GroupKind()) {
		o := O(new(T))
		m.must(m.Get(m.t.Context(), client.ObjectKeyFromObject(u), o))
		out = append(out, o)
	}
	return out
}

// Store implements reconciler.PlanStore.
func (m *management) Store(by reconciler.PlanKey, p reconciler.Plan, failed error) {
	m.planned(by, p)
	if failed != nil {
		m.t.Logf("%s %s: %v", by.Controller, by.Key.Name, failed)
	}
}

// Drop implements reconciler.PlanStore.
func (m *management) Drop(schema.GroupKind, client.ObjectKey) {}

// heldQueue is the queue of a controller that holds requests until the test releases them.
type heldQueue struct {
	workqueue.TypedRateLimitingInterface[reconcile.Request]
	now func() time.Time

	mu sync.Mutex
	// at is when each request is due.
	at map[reconcile.Request]time.Time
}

func (q *heldQueue) Add(r reconcile.Request) { q.AddAfter(r, 0) }

func (q *heldQueue) AddAfter(r reconcile.Request, d time.Duration) {
	at := q.now().Add(d)
	q.mu.Lock()
	defer q.mu.Unlock()
	if was, ok := q.at[r]; !ok || at.Before(was) {
		q.at[r] = at
	}
}

func (q *heldQueue) AddRateLimited(r reconcile.Request) { q.AddAfter(r, time.Second) }

// due returns the requests that can be released, by name.
func (q *heldQueue) due() []reconcile.Request {
	now := q.now()
	q.mu.Lock()
	defer q.mu.Unlock()
	out := slices.DeleteFunc(slices.Collect(maps.Keys(q.at)), func(r reconcile.Request) bool { return q.at[r].After(now) })
	slices.SortFunc(out, func(a, b reconcile.Request) int { return strings.Compare(a.String(), b.String()) })
	return out
}

// release lets the controller have the request.
func (q *heldQueue) release(r reconcile.Request) {
	q.mu.Lock()
	delete(q.at, r)
	q.mu.Unlock()
	q.TypedRateLimitingInterface.Add(r)
}
