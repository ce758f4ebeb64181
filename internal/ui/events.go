package ui

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/rootcause"
)

// Limits of Events.
const (
	eventsFor     = 2 * time.Second
	eventTimeout  = 3 * time.Second
	maxNamespaces = 64
	maxEvents     = 2000
)

// eventCache reads the Events of a namespace, at most once in a short time for all pages.
type eventCache struct {
	reader client.Reader

	mu         sync.Mutex
	namespaces map[string]*namespaceEvents
}

type namespaceEvents struct {
	mu      sync.Mutex
	at      time.Time
	events  []event
	problem string
}

// event is one Event.
type event struct {
	Of      rootcause.Ref
	At      time.Time
	Type    string
	Reason  string
	Note    string
	Action  string
	Count   int32
	Manager string
}

// read returns the Events of a namespace, the latest first, and the reason if they are incomplete.
func (c *eventCache) read(ctx context.Context, namespace string, now time.Time) ([]event, string) {
	n := c.namespace(namespace)
	n.mu.Lock()
	defer n.mu.Unlock()
	if now.Sub(n.at) < eventsFor && !n.at.IsZero() {
		return n.events, n.problem
	}
	ctx, cancel := context.WithTimeout(ctx, eventTimeout)
	defer cancel()
	var list eventsv1.EventList
	err := c.reader.List(ctx, &list, client.InNamespace(namespace), client.Limit(maxEvents))
	n.at, n.problem = now, ""
	switch {
	case err != nil:
		n.problem = eventProblem(err)
	case list.Continue != "":
		n.problem = "The namespace has more Events than are shown."
	}
	if err == nil {
		n.events = newEvents(list.Items)
	}
	return n.events, n.problem
}

func (c *eventCache) namespace(name string) *namespaceEvents {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.namespaces == nil || len(c.namespaces) > maxNamespaces {
		c.namespaces = map[string]*namespaceEvents{}
	}
	if c.namespaces[name] == nil {
		c.namespaces[name] = &namespaceEvents{}
	}
	return c.namespaces[name]
}

func eventProblem(err error) string {
	switch {
	case apierrors.IsForbidden(err):
		return "You may not list Events in this namespace."
	case fault.KindOf(err) == fault.Unreachable:
		return "The API server did not respond, so Events are not up to date."
	}
	return "Events cannot be read: " + err.Error()
}

func newEvents(items []eventsv1.Event) []event {
	out := make([]event, 0, len(items))
	for i := range items {
		out = append(out, newEvent(&items[i]))
	}
	slices.SortStableFunc(out, func(a, b event) int { return b.At.Compare(a.At) })
	return out
}

// newEvent converts an Event of either API. Events of the old API have other fields for time and count.
func newEvent(e *eventsv1.Event) event {
	gv := e.Regarding.GroupVersionKind()
	out := event{
		Of: rootcause.Ref{Group: gv.Group, Kind: e.Regarding.Kind, Namespace: e.Regarding.Namespace, Name: e.Regarding.Name},
		At: e.EventTime.Time, Type: e.Type, Reason: e.Reason, Note: e.Note, Action: e.Action, Count: 1,
		Manager: cmp.Or(e.ReportingController, e.DeprecatedSource.Component),
	}
	if e.Series != nil {
		out.At, out.Count = e.Series.LastObservedTime.Time, e.Series.Count
	} else if e.DeprecatedCount > 1 {
		out.Count = e.DeprecatedCount
	}
	if out.At.IsZero() {
		out.At = e.DeprecatedLastTimestamp.Time
	}
	if out.At.IsZero() {
		out.At = e.CreationTimestamp.Time
	}
	return out
}

// eventsOf selects the Events about some objects.
func eventsOf(events []event, about func(rootcause.Ref) bool, most int) (out []event) {
	for _, e := range events {
		if about(e.Of) && len(out) < most {
			out = append(out, e)
		}
	}
	return out
}
