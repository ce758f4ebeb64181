package remote

import (
	"context"
	"errors"
	"io"
	"maps"
	"net/http"
	"slices"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/slipwayhq/slipway/internal/fault"
)

// The workers of a controller, ten by default, serve all clusters. So that they do not wait for those whose API is slow
// while the others are not served:
//
//	few calls go to one cluster at the same time              callsAtOnce
//	a call that takes long makes its cluster a slow one       lane.patience
//	one call at a time goes to a slow cluster, of these few
//	together to all slow clusters; the others are given up    slowCallsAtOnce
//	one more is tried, and given up when its patience ends,
//	at a slow cluster whose last probe was quick              trialsAtOnce, gate.probed
//	a cluster is not slow any more when a call is quick
//
// So a cluster that was slow for a moment does not wait for those that do not answer for hours.
//
// Who finds the gate closed, or is given up, gets ErrBusy: it comes back later. A write that was given up may have been
// carried out, as after any error.
const (
	// callsAtOnce is how many calls go to one cluster at the same time.
	callsAtOnce = 5
	// slowCallsAtOnce is how many calls go to all slow clusters together.
	slowCallsAtOnce = 3
	// trialsAtOnce is how many more calls go to slow clusters, each for no longer than the patience.
	trialsAtOnce = 1
	// queueing is how long to wait for others to leave a gate, and for a cache that begins to fill.
	queueing = 250 * time.Millisecond
	// leastPatience and mostPatience bound what counts as long. The least leaves room for queueing behind the limit of
	// the rate.
	leastPatience, mostPatience = 2 * queueing, 2 * time.Second
	// tolerance is how many times longer than usual a call may take.
	tolerance = 10
)

// ErrBusy says that calls to the workload cluster take so long that one more would only keep its caller from
// serving other clusters. It is of kind fault.Unreachable; use errors.Is.
var ErrBusy error = fault.New(fault.Unreachable, "Busy", "the workload cluster answers slowly")

// lane is what the gates of all clusters have in common.
type lane struct {
	places      chan struct{}
	trials      chan struct{}
	least, most time.Duration

	mu sync.Mutex
	// each is how long the last calls to each cluster took; zero: nothing is known.
	each map[*gate]time.Duration
	// usual is how long calls take to the quickest quarter of the clusters, noted that many calls ago.
	usual time.Duration
	noted int
}

func newLane() *lane {
	return &lane{
		places: make(chan struct{}, slowCallsAtOnce), trials: make(chan struct{}, trialsAtOnce),
		least: leastPatience, most: mostPatience, each: map[*gate]time.Duration{},
	}
}

// patience is how long a call may take before it makes its cluster a slow one. Where the calls to all clusters take longer,
// because this machine is busy, that is no fault of a cluster. However many calls there are to clusters that are slow, it
// is not longer because of them, unless these are more than three quarters of all.
func (l *lane) patience() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	return min(max(l.least, tolerance*l.usual), l.most)
}

// try takes the place of a trial, if there is one.
func (l *lane) try() bool {
	select {
	case l.trials <- struct{}{}:
		return true
	default:
		return false
	}
}

// join begins to note how long calls to a cluster take, until it is forgotten.
func (l *lane) join(g *gate) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.each[g] = 0
}

// forget forgets a cluster.
func (l *lane) forget(g *gate) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.each, g)
}

// took notes how long a call to a cluster took; what is beyond the patience for it makes no difference. A cluster that has not
// joined, or is forgotten, counts for nothing.
func (l *lane) took(g *gate, d time.Duration) {
	const memory = 16 // calls
	l.mu.Lock()
	defer l.mu.Unlock()
	before, ok := l.each[g]
	if !ok {
		return
	}
	if before > 0 {
		d = before + (d-before)/memory
	}
	l.each[g] = max(d, 1)
	if l.noted++; l.noted >= len(l.each)/16 { // so that it costs as little with a thousand clusters
		l.noted, l.usual = 0, quickest(l.each)
	}
}

// answered reports whether the API answered a call that returned err.
func answered(err error) bool {
	var status apierrors.APIStatus
	return err == nil || errors.As(err, &status)
}

// quickest is how long calls take to the quickest quarter of the clusters of which something is known.
func quickest(each map[*gate]time.Duration) time.Duration {
	known := slices.DeleteFunc(slices.Sorted(maps.Values(each)), func(d time.Duration) bool { return d == 0 })
	if len(known) == 0 {
		return 0
	}
	return known[(len(known)-1)/4]
}

// gate counts the calls to one cluster.
type gate struct {
	slots chan struct{}
	lane  *lane

	mu sync.Mutex
	// slow: the last call that ended took long, or one inside does.
	slow bool
	// quick: nothing is wrong with the last probe.
	quick bool
	// inside is how many calls are; lingering: one of them is in the lane.
	inside    int
	lingering bool
}

func newGate(l *lane) *gate {
	return &gate{slots: make(chan struct{}, callsAtOnce), lane: l, quick: true}
}

// visit is a call that was let in.
type visit struct {
	gate *gate
	// ctx is for the call. It ends when the call is given up, or with cancel.
	ctx      context.Context
	cancel   context.CancelCauseFunc
	began    time.Time
	patience time.Duration
	overdue  *time.Timer

	// slot, inLane and trial: what to give back.
	slot, inLane, trial bool
	// late: the patience ran out; ended: the call has.
	late, ended bool
}

// enter lets a call in, or returns ErrBusy. Whoever enters has to call end, and then cancel.
func (g *gate) enter(ctx context.Context) (*visit, error) {
	if g.isSlow() {
		return g.enterSlow(ctx)
	}
	timer := time.NewTimer(queueing)
	defer timer.Stop()
	select {
	case g.slots <- struct{}{}:
	case <-timer.C:
		return nil, busy(queueing)
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.slow { // since we began to wait
		<-g.slots
		return nil, busy(busyAgain)
	}
	return g.begin(ctx, &visit{slot: true}), nil
}

// enterSlow lets a call to a slow cluster in if it is the only one, and few go to others like it, or as a trial.
func (g *gate) enterSlow(ctx context.Context) (*visit, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	switch {
	case g.inside > 0:
	case g.linger():
		return g.begin(ctx, &visit{inLane: true}), nil
	case g.quick && g.lane.try():
		return g.begin(ctx, &visit{trial: true}), nil
	}
	return nil, busy(busyAgain)
}

// probed notes how a probe went (RC-02), for which no worker of a controller waits.
func (g *gate) probed(took time.Duration, err error) {
	patience := g.lane.patience()
	if answered(err) {
		g.lane.took(g, min(took, patience)) // the machine may have become busy since anybody called this cluster
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.quick = err == nil && took < patience
}

// linger takes a place in the lane, if there is one. The lock is held.
func (g *gate) linger() bool {
	if g.lingering {
		return false
	}
	select {
	case g.lane.places <- struct{}{}:
		g.lingering = true
	default:
	}
	return g.lingering
}

// isSlow reports whether the cluster is a slow one.
func (g *gate) isSlow() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.slow
}

// begin begins a visit. The lock is held.
func (g *gate) begin(ctx context.Context, v *visit) *visit {
	g.inside++
	v.gate, v.began, v.patience = g, time.Now(), g.lane.patience()
	v.ctx, v.cancel = context.WithCancelCause(ctx)
	v.overdue = time.AfterFunc(v.patience, v.expire)
	return v
}

// expire gives the call up whose patience ran out, unless there is a place in the lane.
func (v *visit) expire() {
	v.gate.mu.Lock()
	defer v.gate.mu.Unlock()
	if v.ended {
		return
	}
	v.late, v.gate.slow = true, true
	if v.inLane {
		return
	}
	if v.inLane = v.gate.linger(); v.inLane {
		v.tried()
		return
	}
	v.cancel(ErrBusy)
}

// tried ends the trial, for the next cluster. The gate's lock is held.
func (v *visit) tried() {
	if v.trial {
		v.trial = false
		<-v.gate.lane.trials
	}
}

// end ends the visit and returns the error of the call, or ErrBusy if it was given up.
func (v *visit) end(err error) error {
	v.overdue.Stop()
	g, took := v.gate, time.Since(v.began)
	g.mu.Lock()
	v.ended = true
	g.inside--
	if v.inLane {
		g.lingering = false
		<-g.lane.places
	}
	g.slow = v.late || g.lingering
	v.tried()
	g.mu.Unlock()
	if v.slot {
		<-g.slots
	}
	if v.late || answered(err) { // that nobody listens is found out at once
		g.lane.took(g, min(took, v.patience))
	}
	if err != nil && errors.Is(context.Cause(v.ctx), ErrBusy) {
		return busy(busyAgain)
	}
	return err
}

// do makes a call.
func (g *gate) do(ctx context.Context, call func(context.Context) error) error {
	v, err := g.enter(ctx)
	if err != nil {
		return err
	}
	defer v.cancel(nil)
	return v.end(call(v.ctx))
}

// Gate returns what makes the calls of another client of the cluster go through the same gate as those of Client: for
// who has to reach the cluster before it is connected. Such a call has left the gate when its answer begins.
func (c *Clusters) Gate(key client.ObjectKey) func(http.RoundTripper) http.RoundTripper {
	g := newGate(c.lane)
	if e := c.lookup(key); e != nil {
		g = e.gate
	}
	return func(next http.RoundTripper) http.RoundTripper { return gated{next: next, gate: g} }
}

// gated is a transport whose calls go through the gate.
type gated struct {
	next http.RoundTripper
	gate *gate
}

// RoundTrip implements http.RoundTripper.
func (t gated) RoundTrip(r *http.Request) (*http.Response, error) {
	v, err := t.gate.enter(r.Context())
	if err != nil {
		return nil, err
	}
	resp, err := t.next.RoundTrip(r.WithContext(v.ctx))
	err = v.end(err)
	if err == nil && v.ctx.Err() != nil { // given up at the last moment: the rest of the answer does not come
		_ = resp.Body.Close()
		err = busy(busyAgain)
	}
	if err != nil {
		v.cancel(nil)
		return nil, err
	}
	resp.Body = body{resp.Body, v.cancel}
	return resp, nil
}

// body is of an answer that is read after its call has left the gate.
type body struct {
	io.ReadCloser
	cancel context.CancelCauseFunc
}

// Close implements io.Closer.
func (b body) Close() error {
	defer b.cancel(nil)
	return b.ReadCloser.Close()
}

// guard makes every call of a client go through the gate.
func (g *gate) guard(c client.WithWatch) client.Client {
	return interceptor.NewClient(c, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
			return g.do(ctx, func(ctx context.Context) error { return c.Get(ctx, key, o, opts...) })
		},
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			return g.do(ctx, func(ctx context.Context) error { return c.List(ctx, list, opts...) })
		},
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
			return g.do(ctx, func(ctx context.Context) error { return c.Create(ctx, o, opts...) })
		},
		Delete: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.DeleteOption) error {
			return g.do(ctx, func(ctx context.Context) error { return c.Delete(ctx, o, opts...) })
		},
		DeleteAllOf: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.DeleteAllOfOption) error {
			return g.do(ctx, func(ctx context.Context) error { return c.DeleteAllOf(ctx, o, opts...) })
		},
		Update: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.UpdateOption) error {
			return g.do(ctx, func(ctx context.Context) error { return c.Update(ctx, o, opts...) })
		},
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
			return g.do(ctx, func(ctx context.Context) error { return c.Patch(ctx, o, p, opts...) })
		},
		Apply: func(ctx context.Context, c client.WithWatch, o runtime.ApplyConfiguration, opts ...client.ApplyOption) error {
			return g.do(ctx, func(ctx context.Context) error { return c.Apply(ctx, o, opts...) })
		},
		SubResource: func(c client.WithWatch, name string) client.SubResourceClient {
			return guardedSubResource{next: c.SubResource(name), gate: g}
		},
	})
}

// guardedSubResource makes the calls for a subresource, such as evictions, go through the gate.
type guardedSubResource struct {
	next client.SubResourceClient
	gate *gate
}

func (s guardedSubResource) Get(ctx context.Context, o, sub client.Object, opts ...client.SubResourceGetOption) error {
	return s.gate.do(ctx, func(ctx context.Context) error { return s.next.Get(ctx, o, sub, opts...) })
}

func (s guardedSubResource) Create(ctx context.Context, o, sub client.Object, opts ...client.SubResourceCreateOption) error {
	return s.gate.do(ctx, func(ctx context.Context) error { return s.next.Create(ctx, o, sub, opts...) })
}

func (s guardedSubResource) Update(ctx context.Context, o client.Object, opts ...client.SubResourceUpdateOption) error {
	return s.gate.do(ctx, func(ctx context.Context) error { return s.next.Update(ctx, o, opts...) })
}

func (s guardedSubResource) Patch(ctx context.Context, o client.Object, p client.Patch, opts ...client.SubResourcePatchOption) error {
	return s.gate.do(ctx, func(ctx context.Context) error { return s.next.Patch(ctx, o, p, opts...) })
}

func (s guardedSubResource) Apply(ctx context.Context, o runtime.ApplyConfiguration, opts ...client.SubResourceApplyOption) error {
	return s.gate.do(ctx, func(ctx context.Context) error { return s.next.Apply(ctx, o, opts...) })
}
