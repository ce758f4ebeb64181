package reconciler_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/slipwayhq/slipway/internal/condition"
	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/kube"
	"github.com/slipwayhq/slipway/internal/reconciler"
)

const finalizer = "test/finalizer"

type snapshot struct {
	machine  *clusterv1.Machine
	answered bool
}

type act struct{ what string }

func (a act) String() string { return a.what }

type ask struct{}

func (ask) String() string { return "the answer" }

// harness is a controller whose parts a test replaces.
type harness struct {
	client client.Client
	r      *reconciler.Reconciler[*clusterv1.Machine, snapshot]
	acted  []string
}

func newHarness(t *testing.T, objs ...client.Object) *harness {
	t.Helper()
	s := runtime.NewScheme()
	if err := clusterv1.AddToScheme(s); err != nil {
		t.Fatal(err)
	}
	h := &harness{client: fake.NewClientBuilder().WithScheme(s).WithObjects(objs...).
		WithStatusSubresource(&clusterv1.Machine{}).WithReturnManagedFields().Build()}
	h.r = &reconciler.Reconciler[*clusterv1.Machine, snapshot]{
		Client: h.client, Writer: kube.NewWriter(h.client, "test"), Now: func() time.Time { return time.Unix(1e9, 0) },
		Controller: reconciler.Controller[*clusterv1.Machine, snapshot]{
			Name: "test", Finalizer: finalizer, New: func() *clusterv1.Machine { return &clusterv1.Machine{} },
			Observe: func(_ context.Context, m *clusterv1.Machine) (snapshot, error) { return snapshot{machine: m}, nil },
			Decide:  func(snapshot) reconciler.Plan { return reconciler.Plan{} },
			Read: func(_ context.Context, s snapshot, _ reconciler.ReadRequest) (snapshot, error) {
				s.answered = true
				return s, nil
			},
			Act: func(_ context.Context, _ snapshot, a reconciler.Action) error {
				h.acted = append(h.acted, a.String())
				return nil
			},
			Report: func(snapshot, reconciler.Plan, reconciler.Outcome) reconciler.Report {
				return reconciler.Report{Status: clusterv1.MachineStatus{Phase: "Running"}}
			},
		},
	}
	return h
}

func (h *harness) reconcile(t *testing.T) (ctrl.Result, error) {
	t.Helper()
	return h.r.Reconcile(context.Background(), ctrl.Request{NamespacedName: client.ObjectKey{Namespace: "ns", Name: "m"}})
}

func (h *harness) get(t *testing.T) *clusterv1.Machine {
	t.Helper()
	m := &clusterv1.Machine{}
	if err := h.client.Get(context.Background(), client.ObjectKey{Namespace: "ns", Name: "m"}, m); err != nil {
		t.Fatal(err)
	}
	return m
}

func machine(change func(*clusterv1.Machine)) *clusterv1.Machine {
	m := &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "m", UID: "u", Finalizers: []string{finalizer}}}
	m.Labels = map[string]string{clusterv1.ClusterNameLabel: "c"}
	if change != nil {
		change(m)
	}
	return m
}

func TestFinalizerComesFirst(t *testing.T) { // CL-01, MA-01
	h := newHarness(t, machine(func(m *clusterv1.Machine) { m.Finalizers = nil }))
	h.r.Decide = func(snapshot) reconciler.Plan { return reconciler.Plan{Actions: []reconciler.Action{act{"x"}}} }
	if _, err := h.reconcile(t); err != nil {
		t.Fatal(err)
	}
	m := h.get(t)
	if len(h.acted) != 0 || m.Status.Phase != "" || !cmp.Equal(m.Finalizers, []string{finalizer}) {
		t.Errorf("the first pass only adds the finalizer: acted %v, status %q, finalizers %v", h.acted, m.Status.Phase, m.Finalizers)
	}
	if _, err := h.reconcile(t); err != nil {
		t.Fatal(err)
	}
	if !cmp.Equal(h.acted, []string{"x"}) || h.get(t).Status.Phase != "Running" {
		t.Errorf("the second pass works: %v", h.acted)
	}
}

func TestPause(t *testing.T) { // PA-01, CL-02
	yes := true
	cluster := &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "c"}, Spec: clusterv1.ClusterSpec{Paused: &yes}}
	cases := map[string]struct {
		objs []client.Object
		want metav1.Condition
		acts bool
	}{
		"by cluster": {[]client.Object{machine(nil), cluster}, metav1.Condition{Status: "True", Reason: "Paused", Message: "Cluster spec.paused is set to true"}, false},
		"by annotation": {[]client.Object{machine(func(m *clusterv1.Machine) { m.Annotations = map[string]string{clusterv1.PausedAnnotation: ""} })},
			metav1.Condition{Status: "True", Reason: "Paused", Message: "the object has the cluster.x-k8s.io/paused annotation"}, false},
		"not": {[]client.Object{machine(nil)}, metav1.Condition{Status: "False", Reason: "NotPaused"}, true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			h := newHarness(t, tc.objs...)
			h.r.Decide = func(snapshot) reconciler.Plan { return reconciler.Plan{Actions: []reconciler.Action{act{"x"}}} }
			if _, err := h.reconcile(t); err != nil {
				t.Fatal(err)
			}
			got := condition.Set(h.get(t).Status.Conditions).Get(clusterv1.PausedCondition)
			if got == nil || got.Status != tc.want.Status || got.Reason != tc.want.Reason || got.Message != tc.want.Message {
				t.Errorf("condition %+v", got)
			}
			if (len(h.acted) > 0) != tc.acts {
				t.Errorf("acted: %v", h.acted)
			}
		})
	}
}

// A deletion that is held by a pause is not denied.
func TestPauseHoldsDeletion(t *testing.T) { // PA-01
	for name, tc := range map[string]struct {
		conditions []metav1.Condition
		want       string
	}{
		"of a kind that has the condition": {[]metav1.Condition{{Type: "Deleting", Status: "False", Reason: "NotDeleting"}},
			"True Paused: The deletion continues when the object is no longer paused: the object has the cluster.x-k8s.io/paused annotation"},
		"of another": {nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHarness(t, machine(func(m *clusterv1.Machine) {
				m.Annotations = map[string]string{clusterv1.PausedAnnotation: ""}
				m.Status.Conditions = tc.conditions
			}))
			if err := h.client.Delete(t.Context(), h.get(t)); err != nil {
				t.Fatal(err)
			}
			for range 2 { // and it stays
				if _, err := h.reconcile(t); err != nil {
					t.Fatal(err)
				}
			}
			got := ""
			if c := condition.Set(h.get(t).Status.Conditions).Get("Deleting"); c != nil {
				got = string(c.Status) + " " + c.Reason + ": " + c.Message
			}
			if got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

// What a move creates is not written before the move has given its fields their managers back.
func TestArriving(t *testing.T) { // PA-01
	arriving := machine(func(m *clusterv1.Machine) {
		m.Annotations = map[string]string{clusterv1.PausedAnnotation: ""}
		m.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: kube.ArrivalManager, Operation: "Update", APIVersion: clusterv1.GroupVersion.String(), FieldsType: "FieldsV1", FieldsV1: &metav1.FieldsV1{Raw: []byte("{}")}}}
	})
	h := newHarness(t, arriving)
	if _, err := h.reconcile(t); err != nil {
		t.Fatal(err)
	}
	if set := h.get(t).Status.Conditions; len(set) != 0 || len(h.acted) != 0 {
		t.Errorf("conditions %v, acted %v", set, h.acted)
	}
}

func TestPauseKeepsTheStatus(t *testing.T) { // PA-01
	h := newHarness(t, machine(nil))
	if _, err := h.reconcile(t); err != nil {
		t.Fatal(err)
	}
	m := h.get(t)
	m.Annotations = map[string]string{clusterv1.PausedAnnotation: ""}
	if err := h.client.Update(context.Background(), m); err != nil {
		t.Fatal(err)
	}
	if _, err := h.reconcile(t); err != nil {
		t.Fatal(err)
	}
	if m := h.get(t); m.Status.Phase != "Running" || !condition.Set(m.Status.Conditions).IsTrue(clusterv1.PausedCondition) {
		t.Errorf("status %+v", m.Status)
	}
}

func TestDeletion(t *testing.T) {
	deleting := func(m *clusterv1.Machine) { now := metav1.Now(); m.DeletionTimestamp = &now }
	h := newHarness(t, machine(deleting))
	waits := true
	h.r.Decide = func(snapshot) reconciler.Plan {
		p := reconciler.Plan{}
		if waits {
			p.WaitFor("WaitingForNode", "the Node still exists")
		}
		return p
	}
	if _, err := h.reconcile(t); err != nil {
		t.Fatal(err)
	}
	if m := h.get(t); len(m.Finalizers) != 1 {
		t.Error("who waits keeps its finalizer")
	}
	waits = false
	if _, err := h.reconcile(t); err != nil {
		t.Fatal(err)
	}
	err := h.client.Get(context.Background(), client.ObjectKey{Namespace: "ns", Name: "m"}, &clusterv1.Machine{})
	if fault.KindOf(err) != fault.Gone {
		t.Errorf("an idle plan releases the object, got %v", err)
	}
}

func TestQuestionsAreAnsweredBeforeActing(t *testing.T) {
	h := newHarness(t, machine(nil))
	h.r.Decide = func(s snapshot) reconciler.Plan {
		if !s.answered {
			return reconciler.Plan{Reads: []reconciler.ReadRequest{ask{}}}
		}
		return reconciler.Plan{Actions: []reconciler.Action{act{"answered"}}}
	}
	if _, err := h.reconcile(t); err != nil || !cmp.Equal(h.acted, []string{"answered"}) {
		t.Errorf("acted %v, error %v", h.acted, err)
	}
	h.r.Decide = func(snapshot) reconciler.Plan { return reconciler.Plan{Reads: []reconciler.ReadRequest{ask{}}} }
	if _, err := h.reconcile(t); fault.KindOf(err) != fault.Bug {
		t.Errorf("asking for ever is a bug, got %v", err)
	}
}

func TestFirstFailureEndsThePass(t *testing.T) {
	h := newHarness(t, machine(nil))
	h.r.Decide = func(snapshot) reconciler.Plan {
		return reconciler.Plan{Actions: []reconciler.Action{act{"a"}, act{"b"}, act{"c"}}}
	}
	h.r.Act = func(_ context.Context, _ snapshot, a reconciler.Action) error {
		h.acted = append(h.acted, a.String())
		if a == (act{"b"}) {
			return errors.New("no")
		}
		return nil
	}
	var out reconciler.Outcome
	h.r.Report = func(_ snapshot, _ reconciler.Plan, o reconciler.Outcome) reconciler.Report {
		out = o
		return reconciler.Report{}
	}
	_, err := h.reconcile(t)
	if err == nil || !cmp.Equal(h.acted, []string{"a", "b"}) || out.Failed != (act{"b"}) || len(out.Done) != 1 {
		t.Errorf("err %v, acted %v, outcome %v", err, h.acted, out)
	}
}

func TestErrorKinds(t *testing.T) { // RC-04
	cases := map[string]struct {
		reason  string
		err     error
		retries bool // by the rate limiter, which also logs an error
		after   bool
	}{
		"conflict":    {"the watch brings what we conflicted with", fault.New(fault.Conflict, "x", "x"), false, true},
		"unreachable": {"not connected is waiting, without backoff", fault.New(fault.Unreachable, "x", "x"), false, true},
		"invalid":     {"a person has to change something", fault.New(fault.Invalid, "x", "x"), false, true},
		"transient":   {"nothing better is known", errors.New("x"), true, false},
		"panic":       {"a bug does not end the process", nil, true, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			h := newHarness(t, machine(nil))
			h.r.Observe = func(context.Context, *clusterv1.Machine) (snapshot, error) {
				if tc.err == nil {
					panic("oh")
				}
				return snapshot{}, fmt.Errorf("wrapped: %w", tc.err)
			}
			result, err := h.reconcile(t)
			if (err != nil) != tc.retries || (result.RequeueAfter > 0) != tc.after {
				t.Errorf("%s: got %v %v", tc.reason, result, err)
			}
		})
	}
}

func TestSettledObjectCostsNoWrite(t *testing.T) {
	h := newHarness(t, machine(nil))
	if _, err := h.reconcile(t); err != nil {
		t.Fatal(err)
	}
	before := h.get(t).ResourceVersion
	for range 3 {
		if _, err := h.reconcile(t); err != nil {
			t.Fatal(err)
		}
	}
	if after := h.get(t).ResourceVersion; after != before {
		t.Errorf("resourceVersion moved from %s to %s", before, after)
	}
}

func TestLateFinalizer(t *testing.T) {
	h := newHarness(t, machine(func(m *clusterv1.Machine) { m.Finalizers = nil }))
	h.r.DeferFinalizer = func(m *clusterv1.Machine) bool { return m.Spec.ProviderID == "" }
	h.r.Decide = func(snapshot) reconciler.Plan { return reconciler.Plan{Actions: []reconciler.Action{act{"x"}}} }
	if _, err := h.reconcile(t); err != nil {
		t.Fatal(err)
	}
	m := h.get(t)
	if !cmp.Equal(h.acted, []string{"x"}) || len(m.Finalizers) != 0 {
		t.Errorf("with nothing to protect the pass works without: acted %v, finalizers %v", h.acted, m.Finalizers)
	}
	m.Spec.ProviderID = "x://1"
	if err := h.client.Update(t.Context(), m); err != nil {
		t.Fatal(err)
	}
	if _, err := h.reconcile(t); err != nil {
		t.Fatal(err)
	}
	if !cmp.Equal(h.get(t).Finalizers, []string{finalizer}) || len(h.acted) != 1 {
		t.Errorf("OR-01: one that was lost comes back before anything else: acted %v", h.acted)
	}
}

func TestGone(t *testing.T) {
	h := newHarness(t, machine(func(m *clusterv1.Machine) { m.Finalizers = nil }))
	var gone []client.ObjectKey
	h.r.OnDeleted = func(_ context.Context, key client.ObjectKey) error { gone = append(gone, key); return nil }
	if _, err := h.reconcile(t); err != nil || len(gone) > 0 {
		t.Fatalf("%v, gone %v", err, gone)
	}
	m := h.get(t)
	m.Finalizers = nil
	if err := h.client.Update(t.Context(), m); err != nil {
		t.Fatal(err)
	}
	if err := h.client.Delete(t.Context(), m); err != nil {
		t.Fatal(err)
	}
	if _, err := h.reconcile(t); err != nil || !cmp.Equal(gone, []client.ObjectKey{client.ObjectKeyFromObject(m)}) {
		t.Errorf("%v, gone %v", err, gone)
	}
}

// LO-01: who looks for a Cluster, or for what has a Machine, finds the lines by its kind.
func TestLogNames(t *testing.T) {
	yes := true
	h := newHarness(t, machine(func(m *clusterv1.Machine) {
		m.Labels = map[string]string{clusterv1.ClusterNameLabel: "c"}
		m.OwnerReferences = []metav1.OwnerReference{
			{APIVersion: "example.com/v1", Kind: "Other", Name: "o", UID: "1"},
			{APIVersion: clusterv1.GroupVersion.String(), Kind: "MachineSet", Name: "ms", UID: "2", Controller: &yes},
		}
	}))
	h.r.Decide = func(snapshot) reconciler.Plan { return reconciler.Plan{Actions: []reconciler.Action{act{"x"}}} }
	var lines []string
	log := funcr.New(func(_, args string) { lines = append(lines, args) }, funcr.Options{})
	if _, err := h.r.Reconcile(ctrl.LoggerInto(t.Context(), log), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(h.get(t))}); err != nil {
		t.Fatal(err)
	}
	if len(lines) == 0 {
		t.Fatal("nothing is logged")
	}
	for _, line := range lines {
		if !strings.Contains(line, ` "Cluster"={"name"="c" "namespace"="ns"} "MachineSet"={"name"="ms" "namespace"="ns"} "done"`) {
			t.Errorf("%s", line)
		}
	}
}

func TestEnterWritesWithTheFinalizer(t *testing.T) {
	h := newHarness(t, machine(func(m *clusterv1.Machine) { m.Finalizers = nil }))
	h.r.Adopt = func(context.Context, *clusterv1.Machine) (func(client.Object), error) {
		return func(o client.Object) { o.SetAnnotations(map[string]string{"a": "b"}) }, nil
	}
	if _, err := h.reconcile(t); err != nil {
		t.Fatal(err)
	}
	if m := h.get(t); m.Annotations["a"] != "b" || !cmp.Equal(m.Finalizers, []string{finalizer}) {
		t.Errorf("annotations %v, finalizers %v", m.Annotations, m.Finalizers)
	}
	failing := newHarness(t, machine(func(m *clusterv1.Machine) { m.Finalizers = nil }))
	failing.r.Adopt = func(context.Context, *clusterv1.Machine) (func(client.Object), error) {
		return nil, errors.New("no luck")
	}
	if _, err := failing.reconcile(t); err == nil || len(failing.get(t).Finalizers) != 0 {
		t.Errorf("what cannot be read is tried again: %v", err)
	}
}

// What cannot be said of an object that goes does not keep it: its finalizer goes all the same.
func TestStatusOfWhatGoes(t *testing.T) {
	h := newHarness(t, machine(func(m *clusterv1.Machine) { m.DeletionTimestamp = &metav1.Time{Time: time.Unix(1e9, 0)} }))
	refused := errors.New("the status is refused")
	c := interceptor.NewClient(h.client.(client.WithWatch), interceptor.Funcs{
		SubResourcePatch: func(context.Context, client.Client, string, client.Object, client.Patch, ...client.SubResourcePatchOption) error {
			return refused
		},
	})
	h.r.Writer = kube.NewWriter(c, "test")
	busy := true
	h.r.Decide = func(snapshot) reconciler.Plan {
		var p reconciler.Plan
		if busy {
			p.WaitFor("Waiting", "for something")
		}
		return p
	}
	if _, err := h.reconcile(t); !errors.Is(err, refused) || len(h.get(t).Finalizers) == 0 {
		t.Errorf("while it waits: %v, finalizers %v", err, h.get(t).Finalizers)
	}
	busy = false
	if _, err := h.reconcile(t); err != nil {
		t.Errorf("when nothing is left to do: %v", err)
	}
	err := h.client.Get(context.Background(), client.ObjectKey{Namespace: "ns", Name: "m"}, &clusterv1.Machine{})
	if !apierrors.IsNotFound(err) {
		t.Errorf("it is still there: %v", err)
	}
}
