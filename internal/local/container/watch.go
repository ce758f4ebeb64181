package container

import (
	"context"
	"time"

	"github.com/moby/moby/api/types/events"
	"github.com/moby/moby/client"
	"k8s.io/apimachinery/pkg/types"

	"github.com/slipwayhq/slipway/internal/local/backend"
)

// The event stream is reopened after firstPause, doubling up to lastPause. These attempts also detect that Docker is
// reachable again; nothing else polls it.
const (
	firstPause = 250 * time.Millisecond
	lastPause  = 4 * time.Second
)

// Watch implements backend.Watcher over Docker's event stream. The Broadcaster of the provider calls it once, and it
// runs until the manager stops.
func (e *Engine) Watch(ctx context.Context, handle func(backend.Event)) error {
	pause := firstPause
	for ctx.Err() == nil {
		if e.readEvents(ctx, handle) {
			pause = firstPause
			handle(backend.Event{}) // Docker has become unreachable, which machines must report
		}
		select {
		case <-ctx.Done():
		case <-time.After(pause):
			pause = min(2*pause, lastPause)
		}
	}
	return nil
}

// readEvents reads one event stream to its end and reports whether the stream could be opened.
func (e *Engine) readEvents(ctx context.Context, handle func(backend.Event)) bool {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stream := e.api.Events(ctx, client.EventsListOptions{Filters: eventFilters()})
	select {
	case <-stream.Err: // could not be opened
		return false
	default:
	}
	handle(backend.Event{}) // events before this moment are unknown
	for {
		select {
		case m := <-stream.Messages:
			if event, ok := e.eventOf(m); ok {
				handle(event)
			}
		case <-stream.Err:
			return true
		}
	}
}

func eventFilters() client.Filters {
	return client.Filters{}.
		Add("type", string(events.ContainerEventType), string(events.NetworkEventType), string(events.ImageEventType)).
		Add("event", string(events.ActionCreate), string(events.ActionStart), string(events.ActionDie), string(events.ActionDestroy), string(events.ActionExecDie),
			string(events.ActionPause), string(events.ActionUnPause),
			string(events.ActionTag), string(events.ActionLoad), string(events.ActionImport), string(events.ActionPull))
}

// eventOf converts a Docker event. It returns false for an event that is not about a network, an image or a machine.
func (e *Engine) eventOf(m events.Message) (backend.Event, bool) {
	switch m.Type {
	case events.NetworkEventType:
		return backend.Event{Network: m.Actor.Attributes["name"]}, true
	case events.ImageEventType:
		return backend.Event{}, true // machines may be waiting for the image
	}
	// Containers of other instances are included, because their objects may be in this management cluster after a move.
	labels := m.Actor.Attributes
	if m.Action == events.ActionExecDie {
		if e.execs.End(labels["execID"]) {
			return backend.Event{}, false
		}
	}
	namespace, name := split(labels[backend.LabelObject])
	return backend.Event{Machine: types.NamespacedName{Namespace: namespace, Name: name}}, name != ""
}
