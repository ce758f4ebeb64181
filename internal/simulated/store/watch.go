package store

import (
	"context"
	"sync"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// watchBacklog and backlogBytes limit the events, and the bytes of their values, that are queued for a slow watcher.
// Beyond the limit the watch ends as if its revision had been compacted, and the client lists again.
const (
	watchBacklog = 16 << 10
	backlogBytes = 8 << 20
)

// watch is one watch of a range of keys, with which the storage layer of k8s.io/apiserver serves the watches of
// clients.
type watch struct {
	space           *Keyspace
	start, rangeEnd string
	// from is the first revision to report.
	from int64

	mu      sync.Mutex
	pending []*clientv3.Event
	size    int // bytes of the pending values
	ended   bool
	// signals has capacity one. It signals pending events or the end of the watch.
	signals chan struct{}
}

// watch starts a watch of a range at a revision (0: now).
func (k *Keyspace) watch(ctx context.Context, start, end string, from int64) clientv3.WatchChan {
	out := make(chan clientv3.WatchResponse)
	w := &watch{space: k, start: start, rangeEnd: end, from: from, signals: make(chan struct{}, 1)}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.removed {
		close(out)
		return out
	}
	if from != 0 && k.dropped.since(start, end, from) {
		go func(compacted int64) {
			defer close(out)
			sendCompacted(ctx, out, compacted)
		}(k.compacted)
		return out
	}
	if from != 0 {
		for _, c := range k.history {
			w.enqueue(c.Event)
		}
	}
	k.watches[w] = struct{}{}
	go w.forward(ctx, out)
	return out
}

// sendCompacted reports that the changes up to a revision were compacted.
func sendCompacted(ctx context.Context, out chan<- clientv3.WatchResponse, compacted int64) {
	select {
	case out <- clientv3.WatchResponse{Canceled: true, CompactRevision: compacted}:
	case <-ctx.Done():
	}
}

// enqueue queues an event if it is in the watched range. It never blocks.
func (w *watch) enqueue(e *clientv3.Event) {
	if e.Kv.ModRevision < w.from || !isInRange(string(e.Kv.Key), w.start, w.rangeEnd) {
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
	case w.signals <- struct{}{}:
	default:
	}
}

// take returns the pending events, and whether the watch has ended.
func (w *watch) take() ([]*clientv3.Event, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	events := w.pending
	w.pending, w.size = nil, 0
	return events, w.ended
}

// forward sends the events until the context is done or the watch ends.
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
		case <-w.signals:
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
			sendCompacted(ctx, out, max(1, r.Header.Revision))
			return
		}
	}
}
