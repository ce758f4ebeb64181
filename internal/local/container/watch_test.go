package container

import (
	"context"
	"io"
	"net"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/moby/moby/client"

	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/local/backend"
)

// log collects events.
type eventLog struct {
	mu   sync.Mutex
	seen []backend.Event
}

func (l *eventLog) add(e backend.Event) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.seen = append(l.seen, e)
}

func (l *eventLog) count(e backend.Event) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := 0
	for _, s := range l.seen {
		if s == e {
			n++
		}
	}
	return n
}

func watch(t *testing.T, e *Engine) *eventLog {
	t.Helper()
	log := &eventLog{}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); _ = e.Watch(ctx, log.add) }()
	t.Cleanup(func() { cancel(); <-done })
	return log
}

func TestWatchTellsOfARemovedContainer(t *testing.T) { // IP2-05: within five seconds
	e := engine(t)
	spec := e.testMachine(t, "m1")
	log := watch(t, e)
	eventually(t, "the stream", func() bool { return log.count(backend.Event{}) > 0 })
	if _, err := e.api.ContainerRemove(t.Context(), spec.Name, client.ContainerRemoveOptions{Force: true}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the event", func() bool { return log.count(backend.Event{Machine: spec.Owner.Object}) > 0 })
	if m, err := e.Inspect(t.Context(), refOf(spec)); err != nil || m.State != backend.Orphaned {
		t.Errorf("the volume remains, and is found; got %+v, %v", m, err)
	}
	if err := e.Delete(t.Context(), refOf(spec)); err != nil {
		t.Fatal(err)
	}
	if m, err := e.Inspect(t.Context(), refOf(spec)); err != nil || m.State != backend.Absent {
		t.Errorf("nothing is left; got %+v, %v", m, err)
	}
	if err := e.DeleteNetwork(t.Context(), spec.Network); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the event", func() bool { return log.count(backend.Event{Network: spec.Network.Name}) > 0 })
}

func TestWatchTellsOfTheEndOfABootstrapOnly(t *testing.T) {
	e := engine(t)
	spec := e.testMachine(t, "m1")
	log := watch(t, e)
	eventually(t, "the stream", func() bool { return log.count(backend.Event{}) > 0 })
	if err := e.Bootstrap(t.Context(), refOf(spec), script("while [ ! -e /var/go ]; do sleep 0.05; done\n", patience)); err != nil {
		t.Fatal(err)
	}
	for range 5 {
		if _, err := e.Progress(t.Context(), refOf(spec)); err != nil {
			t.Fatal(err)
		}
	}
	if n := log.count(backend.Event{Machine: spec.Owner.Object}); n != 0 {
		t.Errorf("asking is not an event, else asking would never end; got %d", n)
	}
	if _, err := e.exec(t.Context(), e.found(t, spec), ": >/var/go", nil); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the event", func() bool { return log.count(backend.Event{Machine: spec.Owner.Object}) == 1 })
}

// door stands between the client and Docker's socket, and can be shut: a daemon that is stopped and started again.
type door struct {
	path string
	mu   sync.Mutex
	open net.Listener
	live map[net.Conn]bool
}

func (d *door) set(t *testing.T, open bool) {
	t.Helper()
	d.mu.Lock()
	defer d.mu.Unlock()
	if !open {
		d.open.Close()
		for c := range d.live {
			c.Close()
		}
		return
	}
	l, err := net.Listen("unix", d.path)
	if err != nil {
		t.Fatal(err)
	}
	d.open, d.live = l, map[net.Conn]bool{}
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			d.mu.Lock()
			d.live[c] = true
			d.mu.Unlock()
			go relay(c)
		}
	}()
}

func relay(c net.Conn) {
	defer c.Close()
	docker, err := net.Dial("unix", "/var/run/docker.sock")
	if err != nil {
		return
	}
	defer docker.Close()
	go func() { _, _ = io.Copy(docker, c); docker.Close() }()
	_, _ = io.Copy(c, docker)
}

func TestDockerComesAndGoes(t *testing.T) {
	d := &door{path: filepath.Join(t.TempDir(), "docker.sock")}
	e, err := New(Config{Instance: "slipway-test", Address: "unix://" + d.path})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	log := watch(t, e)
	if _, err := e.Inspect(t.Context(), backend.Ref{Name: "m1"}); fault.KindOf(err) != fault.Unreachable || !strings.Contains(fault.UserMessage(err), "start it") {
		t.Errorf("no Docker is a fault that says what to do; got %v", err)
	}
	d.set(t, true)
	eventually(t, "Docker is found by itself", func() bool { return log.count(backend.Event{}) == 1 })
	if m, err := e.Inspect(t.Context(), backend.Ref{Name: "m1"}); err != nil || m.State != backend.Absent {
		t.Errorf("got %+v, %v", m, err)
	}
	d.set(t, false)
	eventually(t, "its end is noticed", func() bool { return log.count(backend.Event{}) == 2 })
	if _, err := e.Inspect(t.Context(), backend.Ref{Name: "m1"}); fault.KindOf(err) != fault.Unreachable {
		t.Errorf("got %v", err)
	}
	d.set(t, true)
	eventually(t, "its return is noticed", func() bool { return log.count(backend.Event{}) == 3 })
	d.set(t, false)
}
