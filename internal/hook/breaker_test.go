package hook

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

var (
	begin = time.Date(2026, 8, 1, 12, 0, 0, 0, time.UTC)
	down  = BreakerFailure{Reason: "Refused", Message: "nothing listens"}
	wrong = BreakerFailure{Reason: "HTTPStatus", Message: "responded with HTTP 500"}
)

func newBreaker() *breaker { return &breaker{jitter: func(d time.Duration) time.Duration { return d }} }

func after(d time.Duration) time.Time { return begin.Add(d) }

// fail makes n calls that fail at the time.
func fail(t *testing.T, b *breaker, n int, f BreakerFailure) (changed bool) {
	t.Helper()
	for range n {
		p, ok := b.Acquire(begin)
		if !ok {
			t.Fatal("no permit of a closed circuit")
		}
		changed = p.Failed(begin, f)
	}
	return changed
}

func TestOpensAfterFailuresInARow(t *testing.T) {
	b := newBreaker()
	if fail(t, b, 4, down) {
		t.Error("four failures opened the circuit")
	}
	p, _ := b.Acquire(begin)
	p.Succeeded()
	if fail(t, b, 4, down) {
		t.Error("failures with a success between opened the circuit")
	}
	if !fail(t, b, 1, down) {
		t.Error("five failures in a row did not open the circuit")
	}
	want := BreakerState{Open: true, Since: begin, RetryAt: after(time.Second), Cause: down}
	if diff := cmp.Diff(want, b.State()); diff != "" {
		t.Error(diff)
	}
	if _, ok := b.Acquire(after(999 * time.Millisecond)); ok {
		t.Error("a call passes before the pause is over")
	}
}

func TestOneTrialAtATime(t *testing.T) {
	b := newBreaker()
	fail(t, b, 5, wrong)
	trial, ok := b.Acquire(after(time.Second))
	if !ok {
		t.Fatal("no trial when the pause is over")
	}
	if _, ok := b.Acquire(after(time.Second)); ok {
		t.Error("two trials at a time")
	}
	if !trial.Failed(after(2*time.Second), down) {
		t.Error("a failed trial changes nothing")
	}
	want := BreakerState{Open: true, Since: begin, RetryAt: after(4 * time.Second), Cause: down}
	if diff := cmp.Diff(want, b.State()); diff != "" {
		t.Errorf("the pause doubles, and since stays:\n%s", diff)
	}
	trial, _ = b.Acquire(after(4 * time.Second))
	trial.Abandoned()
	trial, ok = b.Acquire(after(4 * time.Second))
	if !ok {
		t.Fatal("an abandoned trial is never made again")
	}
	if !trial.Succeeded() || b.State() != (BreakerState{}) {
		t.Errorf("after an answer: %+v", b.State())
	}
	if !fail(t, b, 5, wrong) || b.State().RetryAt != after(time.Second) {
		t.Error("after an answer, pauses begin with the first again")
	}
}

func TestLateResultsChangeNothing(t *testing.T) {
	b := newBreaker()
	slow, _ := b.Acquire(begin)
	slower, _ := b.Acquire(begin)
	fail(t, b, 5, down)
	state := b.State()
	if slow.Failed(after(time.Minute), wrong) || slower.Succeeded() || b.State() != state {
		t.Errorf("a call of before it opened changed the circuit: %+v", b.State())
	}
}

func TestReached(t *testing.T) {
	b := newBreaker()
	if b.Reset() {
		t.Error("closing a closed circuit is a change")
	}
	fail(t, b, 5, down)
	if !b.Reset() || b.State() != (BreakerState{}) {
		t.Errorf("after an answer: %+v", b.State())
	}
	if fail(t, b, 4, down) {
		t.Error("failures of before are counted")
	}
}

func TestPause(t *testing.T) {
	for n, want := range map[int]time.Duration{1: time.Second, 2: 2 * time.Second, 6: 32 * time.Second, 7: time.Minute, 900: time.Minute} {
		if got := backoff(n); got != want {
			t.Errorf("pause %d is %s, want %s", n, got, want)
		}
	}
	for random, want := range map[float64]time.Duration{0: 800 * time.Millisecond, 0.5: time.Second, 0.999999: 1200 * time.Millisecond} {
		e := &Extensions{cfg: Config{Random: func() float64 { return random }}}
		if got := e.jitter(time.Second); (got - want).Abs() > time.Millisecond {
			t.Errorf("with jitter %v the pause is %s, want %s", random, got, want)
		}
	}
}
