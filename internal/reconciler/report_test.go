package reconciler

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"golang.org/x/time/rate"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/kube"
	"github.com/slipwayhq/slipway/internal/reconciler/pacing"
	"github.com/slipwayhq/slipway/internal/reconciler/reporting"
)

// paced is a controller over one Machine whose status and time a test says.
type paced struct {
	t       *testing.T
	client  client.Client
	writes  int
	now     time.Time
	takes   time.Duration // a write of the status
	status  clusterv1.MachineStatus
	events  []Event
	act     func() error
	actions []Action
	waits   []Wait
	r       *Reconciler[*clusterv1.Machine, *clusterv1.Machine]
	records *events.FakeRecorder
}

func newPaced(t *testing.T) *paced {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := clusterv1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	p := &paced{t: t, now: time.Unix(1e9, 0), records: events.NewFakeRecorder(100)}
	m := &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "m", UID: "u"}}
	p.client = fake.NewClientBuilder().WithScheme(scheme).WithObjects(m).WithStatusSubresource(m).WithReturnManagedFields().
		WithInterceptorFuncs(interceptor.Funcs{
			SubResourcePatch: func(ctx context.Context, c client.Client, name string, o client.Object, patch client.Patch, opts ...client.SubResourcePatchOption) error {
				p.writes++
				p.now = p.now.Add(p.takes)
				return c.SubResource(name).Patch(ctx, o, patch, opts...)
			},
		}).Build()
	p.r = &Reconciler[*clusterv1.Machine, *clusterv1.Machine]{
		Client: p.client, Writer: kube.NewWriter(p.client, "test"), Now: func() time.Time { return p.now }, Events: p.records,
		writes: pacing.WriteDebouncer[client.ObjectKey, Event]{Interval: time.Second}, urgent: pacing.UrgentOf(m),
		Controller: Controller[*clusterv1.Machine, *clusterv1.Machine]{
			Name: "test", New: func() *clusterv1.Machine { return &clusterv1.Machine{} },
			Observe: func(_ context.Context, m *clusterv1.Machine) (*clusterv1.Machine, error) { return m, nil },
			Decide:  func(*clusterv1.Machine) Plan { return Plan{Actions: p.actions, Waits: p.waits} },
			Act:     func(context.Context, *clusterv1.Machine, Action) error { return p.act() },
			Report: func(*clusterv1.Machine, Plan, Outcome) Report {
				return Report{Status: p.status, Events: p.events}
			},
		},
	}
	return p
}

// pass makes one pass after some time and checks the writes so far and the wake-up asked for.
func (p *paced) pass(what string, later time.Duration, writes int, again time.Duration) {
	p.t.Helper()
	p.now = p.now.Add(later)
	result, err := p.r.Reconcile(context.Background(), ctrl.Request{NamespacedName: client.ObjectKey{Namespace: "ns", Name: "m"}})
	if err != nil {
		p.t.Fatal(err)
	}
	if p.writes != writes || result.RequeueAfter != again {
		p.t.Errorf("%s: %d writes, again in %s; want %d, %s", what, p.writes, result.RequeueAfter, writes, again)
	}
}

func (p *paced) recorded() []string {
	var out []string
	for len(p.records.Events) > 0 {
		out = append(out, <-p.records.Events)
	}
	return out
}

func TestPace(t *testing.T) { // FG-03
	p := newPaced(t)
	p.status.Phase = "Pending"
	p.events = []Event{Normal("Began", "began")}
	p.pass("the status of a new object is deferred", 0, 0, time.Second)
	p.pass("until the interval is over", 400*time.Millisecond, 0, 600*time.Millisecond)
	if got := p.recorded(); got != nil {
		t.Errorf("events of what is not written: %v", got)
	}
	p.status.Phase = "Provisioning"
	p.pass("then all changes are written together", 600*time.Millisecond, 1, 0)
	if diff := cmp.Diff([]string{"Normal Began began"}, p.recorded()); diff != "" {
		t.Errorf("its events, each once (-want +got):\n%s", diff)
	}
	p.events = nil
	p.pass("nothing changed", time.Millisecond, 1, 0)
	p.status.Phase = "Provisioned"
	p.pass("the next change is deferred by the same interval", 100*time.Millisecond, 1, time.Second)
	p.status.NodeRef.Name = "n"
	p.pass("an urgent change is written at once", time.Millisecond, 2, 0)
	p.status.Phase = "Running"
	p.pass("a change after a long time is deferred, too", time.Minute, 2, time.Second)
	p.status.Phase = "Provisioned"
	p.pass("a change that is taken back is not written", 100*time.Millisecond, 2, 0)
	p.status.Phase = "Running"
	p.pass("and the next one is deferred by the whole interval", time.Minute, 2, time.Second)
}

func TestPaceOfADeletion(t *testing.T) { // FG-03
	p := newPaced(t)
	p.status.Phase = "Running"
	p.pass("new", 0, 0, time.Second)
	p.pass("written", time.Second, 1, 0)
	p.doom()
	p.r.Decide = func(*clusterv1.Machine) Plan { return Plan{Waits: []Wait{{Reason: "Waiting", Message: "waiting"}}} }
	p.status.Phase = "Deleting"
	p.status.NodeRef.Name = "n"
	p.pass("nothing is urgent during a deletion", time.Minute, 1, time.Second)
	p.pass("the status of a long deletion is written", time.Second, 2, 0)
}

type touch struct{}

func (touch) String() string { return "touch the object" }

// label is an action that writes the object itself.
func (p *paced) label() error {
	m := &clusterv1.Machine{}
	if err := p.client.Get(p.t.Context(), client.ObjectKey{Namespace: "ns", Name: "m"}, m); err != nil {
		return err
	}
	return p.r.Writer.Patch(p.t.Context(), m, func(o client.Object) { o.SetLabels(map[string]string{"a": "b"}) })
}

func TestOwnWriteReportsLater(t *testing.T) { // FG-03
	p := newPaced(t)
	p.status.NodeRef.Name = "n"
	p.actions = []Action{touch{}}
	p.act = p.label
	p.pass("the pass that changes the object leaves the report to the next", 0, 0, 0)
	p.actions = nil
	p.pass("which comes by the event of the change", 0, 1, 0)
}

// TestConflictAfterOwnWrite: a pass that wrote the object and then met a conflict, in the workload cluster for example, has
// nothing new to say: the next one comes at once, and knows the object as it is.
func TestConflictAfterOwnWrite(t *testing.T) { // FG-03
	p := newPaced(t)
	p.status.NodeRef.Name = "n"
	p.actions = []Action{touch{}}
	p.act = func() error {
		if err := p.label(); err != nil {
			return err
		}
		return fault.New(fault.Conflict, "Conflict", "somebody else wrote the Node")
	}
	p.pass("the report is left to the next pass", 0, 0, conflictDelay)
	p.actions = nil
	p.pass("which comes soon", 0, 1, 0)
	p.actions, p.status.NodeRef.Name = []Action{touch{}}, "m"
	p.act = func() error { return fault.New(fault.Conflict, "Conflict", "somebody else wrote the Node") }
	p.pass("a conflict alone leaves nothing to wait for", 0, 2, conflictDelay)
}

func TestFailureIsReportedAtOnce(t *testing.T) {
	p := newPaced(t)
	p.status.Phase = "Pending"
	p.pass("new", 0, 0, time.Second)
	p.actions, p.act = []Action{touch{}}, func() error { return fmt.Errorf("no luck") }
	p.status.Phase = "Failed"
	if _, err := p.r.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKey{Namespace: "ns", Name: "m"}}); err == nil || p.writes != 1 {
		t.Errorf("%v, %d writes: who fails comes back late, so what is wrong must be said now", err, p.writes)
	}
}

func TestNoPace(t *testing.T) { // FG-03: the gate is off
	p := newPaced(t)
	p.r.writes.Interval = 0
	for i := range 3 {
		p.status.Phase = fmt.Sprint(i)
		p.pass("every change is written", 0, i+1, 0)
	}
}

// counters returns the values of all counters by name and labels.
func counters(t *testing.T, registry prometheus.Gatherer) map[string]float64 {
	t.Helper()
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]float64{}
	for _, family := range families {
		for _, m := range family.GetMetric() {
			var labels []string
			for _, l := range m.GetLabel() {
				labels = append(labels, fmt.Sprintf("%s=%q", l.GetName(), l.GetValue()))
			}
			out[family.GetName()+"{"+strings.Join(labels, ",")+"}"] = m.GetCounter().GetValue()
		}
	}
	return out
}

// TestMetrics: every series of ME-01 that controllers count has its name, and the labels that dashboards ask for.
func TestMetrics(t *testing.T) { // ME-01
	registry := prometheus.NewRegistry()
	m, err := reporting.NewMetrics(registry)
	if err != nil {
		t.Fatal(err)
	}
	p := newPaced(t)
	p.r.metrics, p.r.log = m, reporting.EventLog{Controller: "test", NormalRate: rate.NewLimiter(0, 1), Metrics: m}
	p.r.Writer.OnApply(func(kind string, sent bool) { m.Applied("test", kind, sent) })
	p.status.Phase = "Pending"
	p.events = []Event{Normal("A", "a"), Normal("B", "b"), Warning("C", "c")}
	p.pass("held", 0, 0, time.Second)
	p.pass("written", time.Second, 1, 0)
	p.events = nil
	p.pass("unchanged", time.Second, 1, 0)
	if diff := cmp.Diff([]string{"Normal A a", "Warning C c"}, p.recorded()); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
	for name, want := range map[string]float64{
		`capi_reconcile_total{controller="test",result="success"}`:      2,
		`capi_ssa_cache_hits_total{controller="test",kind="Machine"}`:   1,
		`capi_ssa_cache_misses_total{controller="test",kind="Machine"}`: 1,
		`slipway_status_writes_held_total{controller="test"}`:           1,
		`slipway_events_dropped_total{controller="test"}`:               1,
	} {
		if got := counters(t, registry)[name]; got != want {
			t.Errorf("%s is %v, want %v", name, got, want)
		}
	}
	m.Skipped("test", "Machine")
	for _, name := range []string{"capi_reconcile_time_seconds", "capi_reconcile_stale_cache_skips_total", "capi_reconcile_total"} {
		if n, err := testutil.GatherAndCount(registry, name); err != nil || n == 0 {
			t.Errorf("%s: %d series, %v", name, n, err)
		}
	}
	if _, err := reporting.NewMetrics(registry); err == nil {
		t.Error("metrics are registered twice")
	}
	var none *reporting.Metrics
	none.Reconciled("x", 0, ctrl.Result{}, nil)
	none.Skipped("x", "y")
	none.HeldBack("x")
}

// TestEventsOfOneKind: the recorder takes events with the same reason for repetitions, and would keep the first text alone.
func TestEventsOfOneKind(t *testing.T) {
	p := newPaced(t)
	p.status.NodeRef.Name = "n"
	p.events = []Event{Normal("Created", "Created A"), Warning("Created", "B is late"), Normal("Created", "Created C"), Normal("Removed", "Removed D")}
	p.once(time.Minute)
	want := []string{"Normal Created Created A; Created C", "Warning Created B is late", "Normal Removed Removed D"}
	if diff := cmp.Diff(want, p.recorded()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestLongEvent: the API refuses events with a text of more than 1024 bytes.
func TestLongEvent(t *testing.T) {
	p := newPaced(t)
	p.status.NodeRef.Name = "n"
	p.events = []Event{Normal("Created", "%s", "a"+strings.Repeat("é", 1000))}
	p.once(time.Minute)
	got := p.recorded()
	note, found := strings.CutPrefix(strings.Join(got, ""), "Normal Created ")
	if len(got) != 1 || !found || len(note) > 1024 || len(note) < 1020 || !utf8.ValidString(note) || !strings.HasSuffix(note, "é…") {
		t.Errorf("%d bytes: %q", len(note), got)
	}
}
