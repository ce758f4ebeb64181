package up

import (
	"context"
	"time"

	"k8s.io/klog/v2"

	"github.com/slipwayhq/slipway/internal/controlplane/datadir"
	"github.com/slipwayhq/slipway/internal/pause"
)

// livenessInterval is the interval between requests that check whether the manager responds.
const livenessInterval = 15 * time.Second

// watchLiveness records until ctx is done since when the manager does not respond, for `slipway status`. A manager that
// hangs is not restarted, because a busy host delays responses as well. managerRunner.run starts it when the manager is
// ready.
func (k *managerRunner) watchLiveness(ctx context.Context, now func() time.Time) {
	l := liveness{}
	for pause.Sleep(ctx, livenessInterval) == nil {
		k.mu.Lock()
		m := k.state.Manager
		k.mu.Unlock()
		responded := true
		if m != nil && m.PID != 0 && m.Diagnostics != "" {
			request, cancel := context.WithTimeout(ctx, managerTimeout)
			responded = responds(request, m.Diagnostics, k.service.dir)
			cancel()
		}
		pid := 0
		if m != nil {
			pid = m.PID
		}
		before := l.since
		if ctx.Err() != nil || !l.observe(pid, responded, now()) {
			continue
		}
		err := k.write(func(r *datadir.Run) {
			if r.Manager != nil && r.Manager.PID == pid {
				changed := *r.Manager
				changed.UnresponsiveSince = l.since
				r.Manager = &changed
			}
		})
		if err != nil {
			klog.ErrorS(err, "recording that the manager does not respond failed")
			l.since = before // so that the next round records it
		}
	}
}

// liveness is the result of the requests to a manager.
type liveness struct {
	pid   int
	last  time.Time // of the last response
	since time.Time // of the last response before the first failure; zero: it responds
}

// observe records the result of a request, and reports whether since has changed.
func (l *liveness) observe(pid int, responded bool, now time.Time) (changed bool) {
	if pid != l.pid { // the manager was started again
		*l = liveness{pid: pid}
	}
	before := l.since
	switch {
	case responded:
		l.last, l.since = now.UTC(), time.Time{}
	case l.since.IsZero():
		if l.since = l.last; l.since.IsZero() {
			l.since = now.UTC()
		}
	}
	return !before.Equal(l.since)
}
