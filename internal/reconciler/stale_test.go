package reconciler

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"strconv"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/slipwayhq/slipway/internal/kube"
	"github.com/slipwayhq/slipway/internal/reconciler/pacing"
)

const (
	stepAnnotation  = "test/step"
	cleanAnnotation = "test/clean"
	lastStep        = 3
)

// late is a controller whose cache shows what was written late, several writes as one event, at any moment of a pass,
// while someone else writes too.
type late struct {
	t     *testing.T
	dice  *rand.Rand
	truth client.WithWatch
	// cached is what the controller reads; nil: nothing is there.
	cached *clusterv1.Machine
	// queued: an event has come since the last pass began; due: a timer will, zero: none.
	queued bool
	due    time.Time
	now    time.Time
	r      *Reconciler[*clusterv1.Machine, *clusterv1.Machine]
}

func lateKey() client.ObjectKey { return client.ObjectKey{Namespace: "ns", Name: "m"} }

func newLate(t *testing.T, seed uint64, window time.Duration) *late {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := clusterv1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	m := &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "m", UID: "u"}}
	l := &late{t: t, dice: rand.New(rand.NewPCG(seed, 0)), now: time.Unix(1e9, 0)}
	l.truth = fake.NewClientBuilder().WithScheme(scheme).WithObjects(m).WithStatusSubresource(m).WithReturnManagedFields().Build()
	c := interceptor.NewClient(l.truth, interceptor.Funcs{
		Get: func(_ context.Context, _ client.WithWatch, key client.ObjectKey, o client.Object, _ ...client.GetOption) error {
			if l.cached == nil {
				return apierrors.NewNotFound(schema.GroupResource{Resource: "machines"}, key.Name)
			}
			l.cached.DeepCopyInto(o.(*clusterv1.Machine))
			return nil
		},
	})
	l.r = &Reconciler[*clusterv1.Machine, *clusterv1.Machine]{
		Client: c, Writer: kube.NewWriter(c, "test"), Now: func() time.Time { return l.now }, writes: pacing.WriteDebouncer[client.ObjectKey, Event]{Interval: window},
		Controller: Controller[*clusterv1.Machine, *clusterv1.Machine]{
			Name: "test", Finalizer: "test/finalizer", New: func() *clusterv1.Machine { return &clusterv1.Machine{} },
			Observe: func(_ context.Context, m *clusterv1.Machine) (*clusterv1.Machine, error) { return m, nil },
			Decide:  decideLate, Act: l.act,
			Report: func(m *clusterv1.Machine, p Plan, out Outcome) Report {
				return Report{Status: clusterv1.MachineStatus{Phase: fmt.Sprintf("step %d, %d to do, deleting %t", step(m), len(p.Actions), !m.DeletionTimestamp.IsZero())}}
			},
		},
	}
	l.deliver()
	return l
}

func step(o client.Object) int {
	n, _ := strconv.Atoi(o.GetAnnotations()[stepAnnotation]) // none is the first
	return n
}

// decideLate goes step by step, and cleans up in the end; each is a write of the object itself.
func decideLate(m *clusterv1.Machine) Plan {
	var p Plan
	switch _, clean := m.Annotations[cleanAnnotation]; {
	case !m.DeletionTimestamp.IsZero() && !clean:
		p.Do(mark{cleanAnnotation, "yes"})
	case m.DeletionTimestamp.IsZero() && step(m) < lastStep:
		p.Do(mark{stepAnnotation, strconv.Itoa(step(m) + 1)})
	}
	return p
}

// mark annotates the object.
type mark struct{ key, value string }

func (m mark) String() string { return "annotate: " + m.key + "=" + m.value }

func (l *late) act(ctx context.Context, m *clusterv1.Machine, a Action) error {
	l.meanwhile()
	err := l.r.Writer.Patch(ctx, m, func(o client.Object) {
		annotations := maps.Clone(o.GetAnnotations())
		if annotations == nil {
			annotations = map[string]string{}
		}
		annotations[a.(mark).key] = a.(mark).value
		o.SetAnnotations(annotations)
	})
	l.meanwhile()
	return err
}

// meanwhile is what may happen while a pass goes on.
func (l *late) meanwhile() {
	if l.dice.IntN(3) == 0 {
		l.disturb()
	}
	if l.dice.IntN(2) == 0 {
		l.deliver()
	}
}

// read returns the object as it is; nil: it is gone.
func (l *late) read() *clusterv1.Machine {
	m := &clusterv1.Machine{}
	err := l.truth.Get(l.t.Context(), lateKey(), m)
	if client.IgnoreNotFound(err) != nil {
		l.t.Fatal(err)
	}
	if err != nil {
		return nil
	}
	return m
}

// behind reports whether the cache does not show the newest yet, so that an event is on its way.
func (l *late) behind() bool {
	m := l.read()
	return (m == nil) != (l.cached == nil) || m != nil && m.ResourceVersion != l.cached.ResourceVersion
}

// deliver makes the cache show the newest, with one event for all that happened.
func (l *late) deliver() {
	if l.behind() {
		l.cached, l.queued = l.read(), true
	}
}

// disturb is a write of someone else.
func (l *late) disturb() {
	m := l.read()
	if m == nil {
		return
	}
	m.Labels = map[string]string{"other": strconv.Itoa(l.dice.Int())}
	if err := l.truth.Update(l.t.Context(), m); err != nil {
		l.t.Fatal(err)
	}
}

func (l *late) remove() {
	if m := l.read(); m != nil && m.DeletionTimestamp.IsZero() {
		if err := l.truth.Delete(l.t.Context(), m); err != nil {
			l.t.Fatal(err)
		}
	}
}

func (l *late) pass() {
	l.queued, l.due = false, time.Time{}
	result, err := l.r.Reconcile(l.t.Context(), ctrl.Request{NamespacedName: lateKey()})
	if err != nil { // such as that it is gone
		result.RequeueAfter = firstRetry
	}
	if result.RequeueAfter > 0 {
		l.due = l.now.Add(result.RequeueAfter)
	}
}

// rest lets everything arrive, and every pass be made that something asks for, until nothing does.
func (l *late) rest() {
	for range 1000 {
		switch {
		case l.queued:
			l.pass()
		case l.behind():
			l.deliver()
		case !l.due.IsZero():
			l.now, l.queued = l.due, true
		default:
			return
		}
	}
	l.t.Fatal("it does not come to rest")
}

// TestNoWakeUpIsLost: a pass over a stale cache is left out without a timer, since the event that ends that is still to
// come. However late the cache is, whatever of it comes together, and whoever else writes: nothing stands still before its
// end.
func TestNoWakeUpIsLost(t *testing.T) {
	for _, window := range []time.Duration{0, time.Second} {
		for seed := range uint64(30) {
			l := newLate(t, seed, window)
			for range l.dice.IntN(40) {
				switch l.dice.IntN(4) {
				case 0:
					l.disturb()
				case 1:
					l.deliver()
				default:
					if l.queued {
						l.pass()
					}
				}
			}
			if l.dice.IntN(2) == 0 {
				l.rest()
				if m := l.read(); step(m) != lastStep || m.Status.Phase != "step 3, 0 to do, deleting false" {
					t.Fatalf("seed %d, pace %s: it stands still at %v, %q", seed, window, m.Annotations, m.Status.Phase)
				}
			}
			l.remove()
			l.rest()
			if m := l.read(); m != nil {
				t.Fatalf("seed %d, pace %s: it is not gone: %v, finalizers %v", seed, window, m.Annotations, m.Finalizers)
			}
		}
	}
}
