package ui

import (
	"cmp"
	"fmt"
	"net/http"
	"sync"
	"time"
)

// Limits of live updates.
const (
	// maxStreams is the maximum number of open event streams.
	maxStreams = 32
	// quietPeriod is the minimum time between two events of one stream.
	quietPeriod = 500 * time.Millisecond
	// heartbeat is the interval of comments that detect closed connections.
	heartbeat = 20 * time.Second
)

// hub passes changes to the streams of the pages. Publishing never blocks: a stream has at most one pending event, which
// stands for all changes since the previous one.
type hub struct {
	mu      sync.Mutex
	next    uint64
	streams map[*stream]bool
	closed  chan struct{}
	once    sync.Once
}

// stream is one page that listens to topics.
type stream struct {
	topics  map[string]bool
	pending chan struct{}
	last    uint64 // guarded by hub.mu
}

func newHub() *hub { return &hub{streams: map[*stream]bool{}, closed: make(chan struct{})} }

// publish marks the streams of the topics as changed.
func (h *hub) publish(topics ...string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.next++
	for s := range h.streams {
		for _, t := range topics {
			if s.topics[t] {
				s.last = h.next
				select {
				case s.pending <- struct{}{}:
				default:
				}
				break
			}
		}
	}
}

// subscribe returns a stream of the topics, and false if there are too many.
func (h *hub) subscribe(topics ...string) (*stream, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.streams) >= maxStreams {
		return nil, false
	}
	s := &stream{topics: map[string]bool{}, pending: make(chan struct{}, 1)}
	for _, t := range topics {
		s.topics[t] = true
	}
	h.streams[s] = true
	return s, true
}

func (h *hub) unsubscribe(s *stream) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.streams, s)
}

// id returns the number of the last change of the stream.
func (h *hub) id(s *stream) uint64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	return s.last
}

// resume marks the stream as changed if any change followed the event with the given ID.
func (h *hub) resume(s *stream, after string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if after != "" && after != fmt.Sprint(h.next) {
		s.last = h.next
		select {
		case s.pending <- struct{}{}:
		default:
		}
	}
}

// position returns the number of the last change of any topic.
func (h *hub) position() uint64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.next
}

// close ends all streams, which a shutdown of the server would otherwise wait for.
func (h *hub) close() { h.once.Do(func() { close(h.closed) }) }

// serve writes the events of a stream until the request ends. A page sends the position at which it was rendered, or after
// a reconnect the ID of its last event. If any change followed, it gets an event at once, because the change may be one of
// its topics.
func (h *hub) serve(w http.ResponseWriter, r *http.Request, topics ...string) {
	s, ok := h.subscribe(topics...)
	if !ok {
		w.Header().Set("Retry-After", "30")
		http.Error(w, fmt.Sprintf("Too many open pages: at most %d are updated at the same time.", maxStreams), http.StatusServiceUnavailable)
		return
	}
	defer h.unsubscribe(s)
	w.Header().Set("Content-Type", "text/event-stream")
	out := http.NewResponseController(w)
	// A stream has no end: the timeouts of the server would close it. Writers of tests have no deadlines.
	_, _ = out.SetReadDeadline(time.Time{}), out.SetWriteDeadline(time.Time{})
	h.resume(s, cmp.Or(r.Header.Get("Last-Event-ID"), r.URL.Query().Get("after")))
	if !write(w, out, ": connected\nretry: 2000\n\n") {
		return
	}
	h.forward(w, r, s, out)
}

func (h *hub) forward(w http.ResponseWriter, r *http.Request, s *stream, out *http.ResponseController) {
	beat := time.NewTicker(heartbeat)
	defer beat.Stop()
	for {
		select {
		case <-r.Context().Done():
			return
		case <-h.closed:
			return
		case <-beat.C:
			if !write(w, out, ": alive\n\n") {
				return
			}
			continue
		case <-s.pending:
		}
		if !write(w, out, fmt.Sprintf("id: %d\nevent: change\ndata: %d\n\n", h.id(s), h.id(s))) {
			return
		}
		pause := time.NewTimer(quietPeriod)
		select {
		case <-r.Context().Done():
			pause.Stop()
			return
		case <-h.closed:
			pause.Stop()
			return
		case <-pause.C:
		}
	}
}

func write(w http.ResponseWriter, out *http.ResponseController, text string) bool {
	if _, err := w.Write([]byte(text)); err != nil {
		return false
	}
	return out.Flush() == nil
}
