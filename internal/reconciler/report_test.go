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
)

func status(fields map[string]any, conditions ...string) map[string]any {
	out := map[string]any{}
	for k, v := range fields {
		out[k] = v
	}
	var list []any
	for i := 0; i+1 < len(conditions); i += 2 {
		list = append(list, map[string]any{"type": conditions[i], "status": conditions[i+1], "message": fmt.Sprint(i)})
	}
	if list != nil {
		out["conditions"] = list
	}
	return out
}

func TestUrgent(t *testing.T) { // FG-03
	machines := Urgent{
		Fields: []string{"initialization", "nodeRef"}, Later: []string{"version"}, Conditions: []string{clusterv1.ReadyCondition, clusterv1.AvailableCondition},
		Lapses: []string{clusterv1.MachineUpToDateCondition}, Replicas: true,
	}
	provisioned := map[string]any{"initialization": map[string]any{"provisioned": true}}
	replicas := func(n, available float64) map[string]any {
		return map[string]any{"replicas": n, "availableReplicas": available}
	}
	cases := map[string]struct {
		reason     string
		have, want map[string]any
		declared   Urgent
		urgent     bool
	}{
		"message":             {"a condition that only says something else", status(nil, "Ready", "False"), status(nil, "Other", "False", "Ready", "False"), machines, false},
		"phase":               {"a phase is for people", status(map[string]any{"phase": "a"}), status(map[string]any{"phase": "b"}), machines, false},
		"first":               {"nothing is reached yet", nil, status(map[string]any{"phase": "a"}, "Ready", "False"), machines, false},
		"initialization":      {"others go on when it is reached", status(nil), status(provisioned), machines, true},
		"calm here":           {"in this kind nobody looks at it", status(nil), status(provisioned), Urgent{}, false},
		"field":               {"others wait for it", status(nil), status(map[string]any{"nodeRef": "n"}), machines, true},
		"undeclared field":    {"nothing is known to wait for it", status(nil), status(map[string]any{"new": "n"}), machines, false},
		"undeclared ready":    {"nothing is known to wait for it", status(nil, "Ready", "False"), status(nil, "Ready", "True"), Urgent{}, false},
		"undeclared replicas": {"nothing is known to wait for them", status(replicas(5, 4)), status(replicas(5, 5)), Urgent{}, false},
		"field goes":          {"others wait for it", status(map[string]any{"nodeRef": "n"}), status(nil), machines, true},
		"first later":         {"nothing was there that others went by", status(nil), status(map[string]any{"version": "1"}), machines, false},
		"later":               {"others go by it", status(map[string]any{"version": "1"}), status(map[string]any{"version": "2"}), machines, true},
		"ready":               {"others count it", status(nil, "Ready", "False"), status(nil, "Ready", "True"), machines, true},
		"ready at once":       {"it was ready when it was seen first", nil, status(nil, "Ready", "True"), machines, true},
		"not ready":           {"others count it no more", status(nil, "Available", "True"), status(nil, "Available", "Unknown"), machines, true},
		"unknown":             {"it is not available either way", status(nil, "Available", "False"), status(nil, "Available", "Unknown"), machines, false},
		"up to date":          {"everybody expects it", status(nil, "Ready", "False"), status(nil, "Ready", "False", "UpToDate", "True"), machines, false},
		"not up to date":      {"a rollout begins", status(nil, "UpToDate", "True"), status(nil, "UpToDate", "False"), machines, true},
		"somebody else's":     {"another writer says it", status(nil, "UpToDate", "True"), status(nil, "Other", "False"), machines, false},
		"unpaused":            {"it goes on", status(nil, "Paused", "True"), status(nil, "Paused", "False"), machines, true},
		"some available":      {"more will follow", status(replicas(5, 1)), status(replicas(5, 2)), machines, false},
		"all available":       {"a rollout goes on", status(replicas(5, 4)), status(replicas(5, 5)), machines, true},
		"fewer":               {"a rollout goes on", status(replicas(5, 5)), status(replicas(4, 4)), machines, true},
		"more are wanted":     {"nothing is available yet", status(replicas(5, 5)), status(replicas(6, 5)), machines, false},
		"all from the start":  {"a rollout goes on", nil, status(replicas(1, 1)), machines, true},
		"none from the start": {"there is nothing to count", nil, status(replicas(0, 0)), machines, false},
	}
	for name, tc := range cases {
		if got := tc.declared.isUrgent(tc.have, tc.want); got != tc.urgent {
			t.Errorf("%s: urgent %t, but %s", name, got, tc.reason)
		}
	}
}

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
		writes: pacing.WriteDebouncer[client.ObjectKey, Event]{Interval: time.Second},
		Controller: Controller[*clusterv1.Machine, *clusterv1.Machine]{
			Name: "test", New: func() *clusterv1.Machine { return &clusterv1.Machine{} },
			Urgent:  Urgent{Fields: []string{"nodeRef"}, Conditions: []string{clusterv1.ReadyCondition}},
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
	p.pass("a new object is given time to say more", 0, 0, 2*time.Second)
	p.pass("what it says until then waits", 400*time.Millisecond, 0, 1600*time.Millisecond)
	if got := p.recorded(); got != nil {
		t.Errorf("events of what is not written: %v", got)
	}
	p.status.Phase = "Provisioning"
	p.pass("then all is written at once", 1600*time.Millisecond, 1, 0)
	if diff := cmp.Diff([]string{"Normal Began began"}, p.recorded()); diff != "" {
		t.Errorf("its events, each once (-want +got):\n%s", diff)
	}
	p.events = nil
	p.pass("nothing changed", time.Millisecond, 1, 0)
	p.status.Phase = "Provisioned"
	p.pass("so soon after a write the next one waits, and longer than the first", 100*time.Millisecond, 1, 3899*time.Millisecond)
	p.status.NodeRef.Name = "n"
	p.pass("but not for what others wait for", time.Millisecond, 2, 0)
	p.status.Phase = "Running"
	p.pass("a change after a quiet time is written at once", time.Minute, 3, 0)
}

// TestPaceOfABusyMachine: an object that changes all the time is written less and less often, but is written.
func TestPaceOfABusyMachine(t *testing.T) { // FG-03
	p := newPaced(t)
	var at []int
	for tenth := range 300 {
		before := p.writes
		p.status.Phase = fmt.Sprint(tenth)
		p.now = time.Unix(1e9, 0).Add(time.Duration(tenth) * 100 * time.Millisecond)
		if _, err := p.r.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKey{Namespace: "ns", Name: "m"}}); err != nil {
			t.Fatal(err)
		}
		if p.writes > before {
			at = append(at, tenth)
		}
	}
	if diff := cmp.Diff([]int{20, 60, 100, 140, 180, 220, 260}, at); diff != "" {
		t.Errorf("tenths of a second of the writes (-want +got):\n%s", diff)
	}
}

// writesTook makes the last writes take that long and end after some time from now.
func (p *paced) writesTook(each, after time.Duration) {
	p.r.writes.Wrote(16*each, p.now.Add(after)) // a sample counts for a sixteenth, and what was before is forgotten
}

// TestPaceOfABusyServer: the longer a write takes, the fewer are made.
func TestPaceOfABusyServer(t *testing.T) { // FG-03
	p := newPaced(t)
	p.takes = 160 * time.Millisecond
	p.status.NodeRef.Name = "n" // someone waits for it
	p.once(time.Minute)
	if p.r.writes.Latency(p.now) != 10*time.Millisecond {
		t.Errorf("a write is a sixteenth of what is usual: %s", p.r.writes.Latency(p.now))
	}
	p.takes, p.status.NodeRef.Name = 0, "m"
	p.writesTook(200*time.Millisecond, time.Minute)
	p.once(time.Minute)
	p.status.Phase = "Running"
	p.pass("a busy server is spared", time.Second, 2, 3*time.Second)
	p.pass("and told later", 3*time.Second, 3, 0)
	p.status.Phase = "Failed"
	p.pass("it has time again", time.Minute, 4, 0)
	p.status.Phase = "Running"
	p.pass("and is told sooner", time.Second, 5, 0)
}

func TestPaceOfADeletion(t *testing.T) { // FG-03
	p := newPaced(t)
	p.status.Phase = "Running"
	p.pass("new", 0, 0, 2*time.Second)
	p.pass("written", 2*time.Second, 1, 0)
	p.doom()
	p.r.Decide = func(*clusterv1.Machine) Plan { return Plan{Waits: []Wait{{Reason: "Waiting", Message: "waiting"}}} }
	p.status.Phase = "Deleting"
	p.status.NodeRef.Name = "n"
	p.pass("a deletion that is over soon says nothing", time.Minute, 1, 2*time.Second)
	p.pass("one that lasts does", 2*time.Second, 2, 0)
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
	p.pass("new", 0, 0, 2*time.Second)
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

// TestMetrics: every series of ME-01 that controllers count has its name, and the labels that dashboards ask for.
func TestMetrics(t *testing.T) { // ME-01
	registry := prometheus.NewRegistry()
	m, err := NewMetrics(registry)
	if err != nil {
		t.Fatal(err)
	}
	p := newPaced(t)
	p.r.metrics, p.r.normal = m, rate.NewLimiter(0, 1)
	p.r.Writer.OnApply(func(kind string, sent bool) { m.applied("test", kind, sent) })
	p.status.Phase = "Pending"
	p.events = []Event{Normal("A", "a"), Normal("B", "b"), Warning("C", "c")}
	p.pass("held", 0, 0, 2*time.Second)
	p.pass("written", 2*time.Second, 1, 0)
	p.events = nil
	p.pass("unchanged", time.Second, 1, 0)
	if diff := cmp.Diff([]string{"Normal A a", "Warning C c"}, p.recorded()); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
	for name, want := range map[string]struct {
		c      prometheus.Collector
		series int
		value  float64
	}{
		"capi_reconcile_total": {m.total.WithLabelValues("test", "success"), 1, 2}, "capi_ssa_cache_hits_total": {m.hits.WithLabelValues("Machine", "test"), 1, 1},
		"capi_ssa_cache_misses_total":      {m.misses.WithLabelValues("Machine", "test"), 1, 1},
		"slipway_status_writes_held_total": {m.held.WithLabelValues("test"), 1, 1}, "slipway_events_dropped_total": {m.dropped.WithLabelValues("test"), 1, 1},
	} {
		if got := testutil.ToFloat64(want.c); got != want.value {
			t.Errorf("%s is %v, want %v", name, got, want.value)
		}
	}
	m.skipped("test", "Machine")
	for _, name := range []string{"capi_reconcile_time_seconds", "capi_reconcile_stale_cache_skips_total", "capi_reconcile_total"} {
		if n, err := testutil.GatherAndCount(registry, name); err != nil || n == 0 {
			t.Errorf("%s: %d series, %v", name, n, err)
		}
	}
	if _, err := NewMetrics(registry); err == nil {
		t.Error("metrics are registered twice")
	}
	var none *Metrics
	none.reconciled("x", 0, ctrl.Result{}, nil)
	none.skipped("x", "y")
	none.heldBack("x")
	none.droppedEvent("x")
}

// TestPaceOfWhatIsUnderway: an object that was left alone for long and for which something is done says so together with what
// comes of it, and not before.
func TestPaceOfWhatIsUnderway(t *testing.T) { // FG-03
	p := newPaced(t)
	p.status.Phase = "Pending"
	p.pass("new", 0, 0, 2*time.Second)
	p.pass("written", 2*time.Second, 1, 0)
	p.status.Phase, p.actions, p.act = "Provisioning", []Action{touch{}}, func() error { return nil }
	p.pass("what was done leads to more", time.Minute, 1, time.Second)
	p.actions = nil
	p.pass("that does not come", 500*time.Millisecond, 1, 500*time.Millisecond)
	p.status.Phase = "Running"
	p.pass("all of it is written", 500*time.Millisecond, 2, 0)
	p.status.Phase = "Provisioning"
	p.pass("where nothing is done it is written at once", time.Minute, 3, 0)
	p.status.Phase, p.actions = "Failed", []Action{touch{}}
	p.pass("one action after the other", time.Minute, 3, time.Second)
	p.pass("is no reason to wait", 600*time.Millisecond, 3, 400*time.Millisecond)
	p.pass("for longer", 400*time.Millisecond, 4, 0)
	p.status.NodeRef.Name = "n"
	p.pass("what something waits for is written at once", time.Minute, 5, 0)
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

// A Cluster that is deleted on a busy machine, and that an object of another party holds, does not stay at Deleting=False for long.
func TestUrgencyOfDeletion(t *testing.T) { // FG-03
	running, going := status(nil, clusterv1.DeletingCondition, "False"), status(nil, clusterv1.DeletingCondition, "True")
	for name, tc := range map[string]struct {
		have   map[string]any
		course reconcileSummary
		want   pacing.Urgency
	}{
		"new":                  {nil, reconcileSummary{}, pacing.Initial},
		"deleted":              {running, reconcileSummary{deleting: true}, pacing.DeletionStarted},
		"deleted, for persons": {running, reconcileSummary{deleting: true, person: true}, pacing.InitialUserAction},
		"reported":             {going, reconcileSummary{deleting: true}, pacing.Deferrable},
	} {
		if got := (Urgent{}).urgencyOf(&kube.StatusChange{Have: tc.have, Want: going}, tc.course); got != tc.want {
			t.Errorf("%s: got %d, want %d", name, got, tc.want)
		}
	}
}
