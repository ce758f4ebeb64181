package store

import (
	"context"
	"sync"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// watchBacklog is how many events, and backlogBytes how many bytes of values, may wait for a watcher that does not read;
// then its watch ends as if its revision had been compacted, and it lists again.
const (
	watchBacklog = 16 << 10
	backlogBytes = 8 << 20
)

// watch is one watch of a range.
type watch struct {
	space           *Keyspace
	start, rangeEnd string
	// from is the first revision of interest.
	from int64

	mu      sync.Mutex
	pending []*clientv3.Event
	size    int // of what is pending, in bytes
	ended   bool
	// wake has room for one: something is pending, or the watch has ended.
	wake chan struct{}
}

// watch begins to watch a range from a revision on (0: from now).
func (k *Keyspace) watch(ctx context.Context, start, end string, from int64) clientv3.WatchChan {
	out := make(chan clientv3.WatchResponse)
	w := &watch{space: k, start: start, rangeEnd: end, from: from, wake: make(chan struct{}, 1)}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.removed {
		close(out)
		return out
	}
	if from != 0 && k.forgotten.since(start, end, from) {
		go func(compacted int64) {
			defer close(out)
			refuse(ctx, out, compacted)
		}(k.compacted)
		return out
	}
	if from != 0 {
		for _, c := range k.history {
			w.tell(c.Event)
		}
	}
	k.watches[w] = struct{}{}
	go w.forward(ctx, out)
	return out
}

// refuse says that changes up to a revision are not kept any more.
func refuse(ctx context.Context, out chan<- clientv3.WatchResponse, compacted int64) {
	select {
	case out <- clientv3.WatchResponse{Canceled: true, CompactRevision: compacted}:
	case <-ctx.Done():
	}
}

// tell queues an event if it is of interest. It never blocks.
func (w *watch) tell(e *clientv3.Event) {
	if e.Kv.ModRevision < w.from || !within(string(e.Kv.Key), w.start, w.rangeEnd) {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.pending) >= watchBacklog || w.size >= backlogBytes {
		w.ended = true
	}
	if !w.ended {
		w.pending = append(w.pending, e)
		w.size += len(e.Kv.Value)
	}
	w.signal()
}

// end ends the watch.
func (w *watch) end() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ended = true
	w.signal()
}

func (w *watch) signal() {
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// take returns what is pending, and whether the watch has ended.
func (w *watch) take() ([]*clientv3.Event, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	events := w.pending
	w.pending, w.size = nil, 0
	return events, w.ended
}

// forward hands the events on until the context or the watch ends.
func (w *watch) forward(ctx context.Context, out chan<- clientv3.WatchResponse) {
	defer close(out)
	defer func() {
		w.space.mu.Lock()
		delete(w.space.watches, w)
		w.space.mu.Unlock()
	}()
	for {
		select {
		case <-ctx.Done():
			return
		case <-w.wake:
		}
		events, ended := w.take()
		r := clientv3.WatchResponse{Header: etcdserverpb.ResponseHeader{}, Events: events}
		if len(events) > 0 {
			r.Header.Revision = events[len(events)-1].Kv.ModRevision
			select {
			case out <- r:
			case <-ctx.Done():
				return
			}
		}
		if ended {
			refuse(ctx, out, max(1, r.Header.Revision))
			return
		}
	}
}
