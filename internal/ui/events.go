package ui

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/fields"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/rootcause"
)

// Limits of Events.
const (
	eventsFor    = 2 * time.Second
	eventTimeout = 3 * time.Second
	// eventLife is the time after which Events that no page uses are removed from memory.
	eventLife  = time.Minute
	maxQueries = 64
	maxEvents  = 2000
)

// eventQuery selects Events: those of a namespace, or those about the objects of a kind and name in it.
type eventQuery struct{ Namespace, Kind, Name string }

// options are the options of the list request.
func (q eventQuery) options() []client.ListOption {
	out := []client.ListOption{client.InNamespace(q.Namespace), client.Limit(maxEvents)}
	if q.Kind != "" {
		// The terms have an order, so that equal queries are equal requests.
		out = append(out, client.MatchingFieldsSelector{Selector: fields.AndSelectors(
			fields.OneTermEqualSelector("regarding.kind", q.Kind),
			fields.OneTermEqualSelector("regarding.name", q.Name))})
	}
	return out
}

// eventCache reads Events, at most once in a short time for all pages. Each source has one.
type eventCache struct {
	reader client.Reader

	mu      sync.Mutex
	results map[eventQuery]*eventResult
}

// eventResult is the result of a query.
type eventResult struct {
	// used is the time of the last request; guarded by the mutex of the cache.
	used time.Time

	mu      sync.Mutex
	at      time.Time
	events  []event
	problem string
}

// event is one Event. The pages of objects and the timelines show them.
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

// what returns the kind of the entry of a timeline: a Normal Event with an action reports what a controller has done, and
// other Events report what was noticed.
func (e event) what() string {
	if e.Type == corev1.EventTypeNormal && e.Action != "" {
		return "action"
	}
	return "event"
}

// read returns the selected Events, the latest first, and the reason if they are incomplete. The request to the API server
// serves all pages, so that it does not end with the request of the page that started it.
func (c *eventCache) read(ctx context.Context, q eventQuery, now time.Time) ([]event, string) {
	n := c.result(q, now)
	n.mu.Lock()
	defer n.mu.Unlock()
	if now.Sub(n.at) < eventsFor && !n.at.IsZero() {
		return n.events, n.problem
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), eventTimeout)
	defer cancel()
	var list eventsv1.EventList
	err := c.reader.List(ctx, &list, q.options()...)
	n.at, n.problem = now, ""
	switch {
	case err != nil:
		n.problem = eventProblem(err)
	case list.Continue != "":
		n.problem = "There are more Events than are shown."
	}
	if errors.Is(err, context.Canceled) {
		n.at = time.Time{}
	}
	if err == nil {
		n.events = newEvents(list.Items)
	}
	return n.events, n.problem
}

// result returns the result of a query, which may be empty. If there are too many, the one that was not used for the longest
// time is removed.
func (c *eventCache) result(q eventQuery, now time.Time) *eventResult {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.results == nil {
		c.results = map[eventQuery]*eventResult{}
	}
	n := c.results[q]
	if n == nil {
		if len(c.results) >= maxQueries {
			oldest := slices.MinFunc(slices.Collect(maps.Keys(c.results)), func(a, b eventQuery) int { return c.results[a].used.Compare(c.results[b].used) })
			delete(c.results, oldest)
		}
		n = &eventResult{}
		c.results[q] = n
	}
	n.used = now
	return n
}

// drop removes results that have not been used for some time. Each refresh of the source calls it.
func (c *eventCache) drop(now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	maps.DeleteFunc(c.results, func(_ eventQuery, n *eventResult) bool { return now.Sub(n.used) > eventLife })
}

func eventProblem(err error) string {
	switch {
	case apierrors.IsForbidden(err):
		return "You may not list Events in this namespace: that needs a Role with the verb list for events in events.k8s.io."
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

// newEvent converts an Event. Events that were written with the core API have their time and count in deprecated fields.
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

// eventsOf selects the Events about some objects, up to a limit. The pages of clusters and objects call it.
func eventsOf(events []event, about func(rootcause.Ref) bool, most int) ([]event, cut) {
	var out []event
	for _, e := range events {
		if about(e.Of) {
			out = append(out, e)
		}
	}
	return limit(out, most)
}
