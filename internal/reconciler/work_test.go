package reconciler

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slipwayhq/slipway/internal/condition"
)

// listener is a Work that notes what it is told.
type listener struct {
	said  []string
	aside time.Duration
}

func (l *listener) Begin(kind schema.GroupVersionKind, o client.Object) (func(), time.Duration) {
	if l.aside > 0 {
		return nil, l.aside
	}
	what := kind.Kind + " " + o.GetName() + " " + string(o.GetUID())
	l.said = append(l.said, "begin "+what)
	return func() { l.said = append(l.said, "done "+what) }, 0
}

// Work hears of every reconciliation, and an object that is set aside is not touched until its time has come.
func TestWork(t *testing.T) {
	p, work := newPaced(t), &listener{}
	p.r.writes.Interval = 0
	p.r.work, p.r.kind = work, clusterv1.GroupVersion.WithKind("Machine")
	p.status.Phase = "Pending"
	p.pass("an object like any other", 0, 1, 0)
	work.aside, p.status.Phase = time.Minute, "Running"
	for range 2 {
		p.pass("an object that is set aside says so, and nothing else", time.Second, 2, time.Minute)
	}
	m := &clusterv1.Machine{}
	if err := p.client.Get(t.Context(), client.ObjectKey{Namespace: "ns", Name: "m"}, m); err != nil {
		t.Fatal(err)
	}
	if c := condition.Set(m.Status.Conditions).Get("Reconciled"); c == nil || c.Reason != "SetAside" || m.Status.Phase != "Pending" {
		t.Errorf("what it says: %+v, phase %s", c, m.Status.Phase)
	}
	work.aside = 0
	p.actions, p.act = []Action{touch{}}, func() error { panic("no luck") }
	_, err := p.r.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKey{Namespace: "ns", Name: "m"}})
	if err == nil {
		t.Error("a panic is no error")
	}
	want := []string{"begin Machine m u", "done Machine m u", "begin Machine m u", "done Machine m u"}
	if diff := cmp.Diff(want, work.said); diff != "" {
		t.Error(diff)
	}
}
