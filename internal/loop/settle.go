package loop

import (
	"context"
	"math"
	"slices"
	"sync"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/kube"
)

// Pacing of status writes (FG-03, docs/decisions/0006-pacing.md). While something comes into being, its status
// changes with every step of every part of it, and most of that only reports. A change that nobody waits for is
// written when the last write of the object's status is a window ago, together with what changed since; a change
// that somebody waits for is written at once and takes everything else along.

// report writes the status and records the events, or holds both back and returns for how long. What the API would refuse
// of the status is left out, and refused says so.
func (r *Reconciler[O, S]) report(ctx context.Context, o O, report Report, out Outcome) (left time.Duration, refused, err error) {
	key := client.ObjectKeyFromObject(o)
	again := out.Err == nil || fault.KindOf(out.Err) == fault.Conflict
	if r.pacer.window > 0 && again && r.Writer.Writes().Stale(o) {
		// The pass wrote the object itself: the event of that brings another pass, whose status is of the new
		// generation.
		r.pacer.keep(key, report.Events, r.now())
		return 0, nil, nil
	}
	if report.Status != nil {
		var change *kube.StatusChange
		if change, refused, err = r.statusChange(o, report.Status); err != nil {
			return 0, nil, err
		}
		if change != nil {
			deleting, failed := !o.GetDeletionTimestamp().IsZero(), out.Err != nil && fault.KindOf(out.Err) != fault.Conflict
			kind := calmly
			switch {
			case failed || !deleting && urgent(change.Have, change.Want, r.Calm):
				kind = awaitedNow
			case begins(change.Have, deleting):
				kind = beginning
			case explains(change.Have, change.Want):
				kind = explaining
			}
			if left := r.pacer.hold(key, r.now(), kind); left > 0 {
				r.pacer.keep(key, report.Events, r.now())
				r.metrics.heldBack(r.Name)
				return left, refused, nil
			}
			began := r.now()
			if err := r.takeOver(ctx, o, change.Want); err != nil {
				return 0, refused, err
			}
			if err := change.Write(ctx); err != nil {
				return 0, refused, err
			}
			ended := r.now()
			r.pacer.took(ended.Sub(began), ended)
		}
	}
	for _, e := range r.pacer.release(key, report.Events) {
		r.record(o, e)
	}
	return 0, refused, nil
}

// pacer remembers when the status of each object was written, and what is held back. The zero value holds
// nothing back.
type pacer struct {
	window time.Duration

	mu sync.Mutex
	// usual is how long the last writes took, when the last of them ended. Where an API server is so busy that they take
	// long, fewer are made.
	usual   time.Duration
	ended   time.Time
	objects map[client.ObjectKey]pace
	// crowd is the number of objects at which to forget those that were not seen for long.
	crowd int
}

// pace is what a pacer remembers of one object.
type pace struct {
	// since is the time of the last write, or of the first sight of what has begun.
	since time.Time
	// begun: something begins of which nothing was written yet.
	begun bool
	// stale is since when what is written gives a reason that is no longer true; zero: it does not.
	stale time.Time
	// window for this object: it doubles while changes keep coming, so that on a busy machine, where everything
	// takes longer, not more is written.
	window time.Duration
	// events wait for the write: they tell of what it says.
	events []Event
	// seen is the time of the last pass that had something to remember. There is none when the object is gone.
	seen time.Time
}

// hold returns for how long to hold a change of a status back, zero: not at all; the change is then as good as
// written. What begins is held back from its first sight on.
func (p *pacer) hold(key client.ObjectKey, now time.Time, kind urgency) time.Duration {
	if p.window <= 0 {
		return 0
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	have, window := p.objects[key], p.present(now)
	if kind == beginning && !have.begun {
		have.since, have.begun, have.window = now, true, 2*window // much is going to change at first
	}
	have.window = max(have.window, window)
	switch {
	case kind != explaining:
		have.stale = time.Time{}
	case have.stale.IsZero():
		have.stale = now
	}
	passed, left := now.Sub(have.since), have.since.Add(have.window).Sub(now)
	if kind == explaining {
		left = min(left, have.stale.Add(window/2).Sub(now))
	}
	switch {
	case kind == awaitedNow:
	case left > 0:
		p.remember(key, have, now)
		return left
	case passed < 2*have.window:
		have.window = min(2*have.window, slowest*window)
	default: // nothing had changed for long
		have.window = window
	}
	have.since, have.begun, have.stale = now, false, time.Time{}
	p.remember(key, have, now)
	return 0
}

// took notes how long a write took that has just ended.
func (p *pacer) took(d time.Duration, now time.Time) {
	const memory = 16 // writes
	p.mu.Lock()
	defer p.mu.Unlock()
	lately := p.lately(now)
	p.usual, p.ended = lately+(d-lately)/memory, now
}

// takes returns how long a write takes lately.
func (p *pacer) takes(now time.Time) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.lately(now)
}

// fades is after which time without a write half as much is left of how long writes took. Where nothing is written any
// more, an API server that was busy then is busy no more, as far as anybody knows.
const fades = time.Second

// lately is how long a write takes lately. The mutex must be held.
func (p *pacer) lately(now time.Time) time.Duration {
	halves := max(0, now.Sub(p.ended).Seconds()/fades.Seconds())
	return time.Duration(float64(p.usual) * math.Exp2(-halves))
}

// present is the window at present. The mutex must be held.
func (p *pacer) present(now time.Time) time.Duration {
	return min(max(p.window, share*p.lately(now)), busiest*p.window)
}

// keep holds events back until released.
func (p *pacer) keep(key client.ObjectKey, events []Event, now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(events) == 0 {
		return
	}
	have := p.objects[key]
	for _, e := range events {
		if !slices.Contains(have.events, e) { // every pass until the write tells of the same
			have.events = append(have.events, e)
		}
	}
	p.remember(key, have, now)
}

// release returns the events that were held back, followed by those of this pass that are not among them.
func (p *pacer) release(key client.ObjectKey, events []Event) []Event {
	p.mu.Lock()
	defer p.mu.Unlock()
	have, ok := p.objects[key]
	if !ok || len(have.events) == 0 {
		return events
	}
	held := have.events
	have.events = nil
	p.objects[key] = have
	for _, e := range events {
		if !slices.Contains(held, e) {
			held = append(held, e)
		}
	}
	return held
}

const (
	// slowest is how many windows lie between two writes at most.
	slowest = 4
	// share is how many times as long as a write takes the window is at least, and busiest how many times as long as
	// usual it is at most.
	share, busiest = 20, 5
)

// fewest is how many objects a pacer remembers at least.
const fewest = 1024

// remember notes what to know of an object. What was held back of others that were not seen for twice as long as anything
// is held back is forgotten: they are gone.
func (p *pacer) remember(key client.ObjectKey, have pace, now time.Time) {
	if p.objects == nil {
		p.objects, p.crowd = map[client.ObjectKey]pace{}, fewest
	}
	if len(p.objects) >= p.crowd {
		for k, v := range p.objects {
			if now.Sub(v.seen) > 2*max(v.window, slowest*p.window) {
				delete(p.objects, k)
			}
		}
		p.crowd = max(fewest, 2*len(p.objects))
	}
	have.seen = now
	p.objects[key] = have
}
