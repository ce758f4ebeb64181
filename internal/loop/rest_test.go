package loop

import (
	"errors"
	"fmt"
	"testing"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// FG-03
func TestRest(t *testing.T) {
	now := time.Unix(1e9, 0)
	m, other := client.ObjectKey{Namespace: "ns", Name: "m"}, client.ObjectKey{Namespace: "ns", Name: "other"}
	ms := time.Millisecond
	steps := []struct {
		what string
		key  client.ObjectKey
		at   time.Duration
		want time.Duration
	}{
		{"the first event makes a pass at once", m, 0, 0},
		{"one that follows soon waits", m, 30 * ms, 70 * ms},
		{"and so does the next: they share a pass", m, 60 * ms, 40 * ms},
		{"another object does not wait", other, 60 * ms, 0},
		{"that pass", m, 100 * ms, 0},
		{"the time begins again with it", m, 150 * ms, 50 * ms},
		{"after a long time a pass begins at once", m, time.Hour, 0},
	}
	r := rests{least: 100 * ms}
	for _, step := range steps {
		if got := r.left(step.key, now.Add(step.at), 10*ms); got != step.want {
			t.Errorf("%s: want %s, got %s", step.what, step.want, got)
		}
	}
	var none rests
	for range 2 {
		if left := none.left(m, now, time.Second); left != 0 {
			t.Errorf("the gate is off: want no rest, got %s", left)
		}
	}
}

// TestRestOfABusyServer: the longer a write takes, the more events share a pass.
func TestRestOfABusyServer(t *testing.T) { // FG-03
	p := newPaced(t)
	p.r.pacer.window, p.r.rests.least = 0, 100*time.Millisecond
	p.once(0) // writes the status; the others find nothing to write
	for _, step := range []struct {
		write, want time.Duration
		reason      string
	}{
		{25 * time.Millisecond, 70 * time.Millisecond, "the time is what it always is"},
		{75 * time.Millisecond, 270 * time.Millisecond, "four times as long as a write"},
		{time.Second, 470 * time.Millisecond, "somebody may be watching"},
	} {
		p.writesTook(step.write, 2*time.Hour)
		p.pass("the first event, with writes of "+step.write.String(), time.Hour, 1, 0)
		p.pass(step.reason, 30*time.Millisecond, 1, step.want)
	}
	p.writesTook(time.Second, 0)
	p.pass("an event long after the writes", time.Hour, 1, 0)
	p.pass("and one that follows soon: nobody knows of a busy server", 30*time.Millisecond, 1, 70*time.Millisecond)
}

func TestRestsAreForgotten(t *testing.T) {
	r, now := rests{least: time.Second}, time.Unix(1e9, 0)
	for i := range 10000 {
		r.left(client.ObjectKey{Name: fmt.Sprint(i)}, now.Add(time.Duration(i)*time.Millisecond), 0)
	}
	if n := len(r.began); n > 3000 { // a thousand rest at a time
		t.Errorf("%d objects are remembered", n)
	}
}

// A pass that has to rest is put off as it is: nothing is read, nothing is written.
func TestReconcileRests(t *testing.T) { // FG-03
	p := newPaced(t)
	p.r.pacer.window, p.r.rests.least = 0, 100*time.Millisecond
	p.status.Phase = "Pending"
	p.pass("the first event", 0, 1, 0)
	p.status.Phase = "Running"
	p.pass("one that follows soon", 30*time.Millisecond, 1, 70*time.Millisecond)
	p.pass("the pass that was put off", 70*time.Millisecond, 2, 0)
}

// A pass that follows a failure does not rest: the answer "later" would count as a success, and the pauses between the
// failures would begin anew instead of growing.
func TestFailuresDoNotRest(t *testing.T) { // FG-03
	for name, act := range map[string]func() error{
		"an error": func() error { return errors.New("no luck") },
		"a panic":  func() error { panic("no luck") },
	} {
		p := newPaced(t)
		p.r.pacer.window, p.r.rests.least = 0, 5*time.Second
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
