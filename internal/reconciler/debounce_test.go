package reconciler

import (
	"errors"
	"testing"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// A reconciliation that comes too soon is deferred as it is: nothing is read, nothing is written.
func TestReconcileIsDebounced(t *testing.T) { // FG-03
	p := newPaced(t)
	p.r.writes.Interval, p.r.starts.Interval = 0, 100*time.Millisecond
	p.status.Phase = "Pending"
	p.pass("the first event", 0, 1, 0)
	p.status.Phase = "Running"
	p.pass("one that follows soon", 30*time.Millisecond, 1, 70*time.Millisecond)
	p.pass("the pass that was put off", 70*time.Millisecond, 2, 0)
}

// A reconciliation that follows a failure is not deferred: that would count as a success, and the backoff would begin again
// instead of growing.
func TestFailuresAreNotDebounced(t *testing.T) { // FG-03
	for name, act := range map[string]func() error{
		"an error": func() error { return errors.New("no luck") },
		"a panic":  func() error { panic("no luck") },
	} {
		p := newPaced(t)
		p.r.writes.Interval, p.r.starts.Interval = 0, 5*time.Second
		p.actions, p.act = []Action{touch{}}, act
		for again := range 5 {
			p.now = p.now.Add(50 * time.Millisecond)
			_, err := p.r.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKey{Namespace: "ns", Name: "m"}})
			if err == nil {
				t.Errorf("%s, try %d: no error, so whoever tries again forgets how often it failed", name, again)
			}
		}
		p.act = func() error { return nil }
		p.now = p.now.Add(50 * time.Millisecond)
		p.pass(name+" that is over", 0, p.writes, 0)
		p.pass(name+" that is over, soon after", time.Second, p.writes, 4*time.Second)
	}
}
