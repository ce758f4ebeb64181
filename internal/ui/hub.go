package ui

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"
	"strings"
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
	// writeTimeout is the time in which a browser has to receive an event, so that a connection that does not read is
	// closed.
	writeTimeout = 10 * time.Second
)

// hub passes changes to the streams of the pages. Publishing never blocks: a stream has at most one pending event, which
// stands for all changes since the previous one. The server has one for all sources.
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

// publish marks the streams of the topics as changed. A source calls it after a refresh.
func (h *hub) publish(topics ...string) {
	h.publishIf(func(s *stream) bool {
		return slices.ContainsFunc(topics, func(topic string) bool { return s.topics[topic] })
	})
}

// publishSource marks all streams with a topic of the source as changed. A source calls it when the state of its copy
// changes.
func (h *hub) publishSource(id string) {
	h.publishIf(func(s *stream) bool {
		for topic := range s.topics {
			if strings.HasPrefix(topic, id+"/") {
				return true
			}
		}
		return false
	})
}

func (h *hub) publishIf(selected func(*stream) bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.next++
	for s := range h.streams {
		if selected(s) {
			s.last = h.next
			s.wake()
		}
	}
}

// wake makes an event pending, if none is.
func (s *stream) wake() {
	select {
	case s.pending <- struct{}{}:
	default:
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
		s.wake()
	}
}

// position returns the number of the last change of any topic. Each page contains it.
func (h *hub) position() uint64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.next
}

// close ends all streams, which a shutdown of the server would otherwise wait for. [Server.Serve] calls it at its end.
func (h *hub) close() { h.once.Do(func() { close(h.closed) }) }

// serve writes the events of a stream until the request ends. A page sends the position at which it was rendered, or
// after a reconnect the ID of its last event. If any change followed, it gets an event at once, because the change may
// be one of its topics. The script of the page (assets/app.js) names the parameter "after" and, as in forward, the
// event "change".
func (h *hub) serve(w http.ResponseWriter, r *http.Request, topics ...string) {
	s, ok := h.subscribe(topics...)
	if !ok {
		w.Header().Set("Retry-After", "30")
		http.Error(w, fmt.Sprintf("Too many open pages: at most %d are updated at the same time. Close some of them.", maxStreams), http.StatusServiceUnavailable)
		return
	}
	defer h.unsubscribe(s)
	w.Header().Set("Content-Type", "text/event-stream")
	out := http.NewResponseController(w)
	_ = out.SetReadDeadline(time.Time{}) // a stream has no end; writers of tests have no deadlines
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

// write sends a text within a time limit, which replaces the time limit of the server for the whole response.
func write(w http.ResponseWriter, out *http.ResponseController, text string) bool {
	_ = out.SetWriteDeadline(time.Now().Add(writeTimeout)) // writers of tests have no deadlines
	if _, err := w.Write([]byte(text)); err != nil {
		return false
	}
	return out.Flush() == nil
}
