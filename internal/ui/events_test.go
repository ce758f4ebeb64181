package ui

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	eventsv1 "k8s.io/api/events/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slipwayhq/slipway/test/mirrortest"
)

// eventReader returns one Event, or the error of the context, and records the field selectors.
type eventReader struct {
	client.Reader
	selectors []string
	err       error
}

func (r *eventReader) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	var o client.ListOptions
	o.ApplyOptions(options)
	selector := ""
	if o.FieldSelector != nil {
		selector = o.FieldSelector.String()
	}
	r.selectors = append(r.selectors, o.Namespace+" "+selector)
	if ctx.Err() != nil || r.err != nil {
		return errors.Join(ctx.Err(), r.err)
	}
	list.(*eventsv1.EventList).Items = []eventsv1.Event{{Reason: "Started"}}
	return nil
}

func TestEventsOfCancelledRequest(t *testing.T) {
	c := eventCache{reader: &eventReader{}}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if events, problem := c.read(ctx, eventQuery{Namespace: "team"}, mirrortest.Now()); len(events) != 1 || problem != "" {
		t.Errorf("a request that has ended: %d Events, %q", len(events), problem)
	}
	failing := &eventReader{err: context.Canceled}
	c = eventCache{reader: failing}
	_, _ = c.read(t.Context(), eventQuery{Namespace: "team"}, mirrortest.Now())
	failing.err = nil
	if events, problem := c.read(t.Context(), eventQuery{Namespace: "team"}, mirrortest.Now()); len(events) != 1 || problem != "" {
		t.Errorf("after a cancellation: %d Events, %q", len(events), problem)
	}
}

func TestEventQueries(t *testing.T) {
	r := &eventReader{}
	c := eventCache{reader: r}
	for range 2 {
		_, _ = c.read(t.Context(), eventQuery{Namespace: "team"}, mirrortest.Now())
		_, _ = c.read(t.Context(), eventQuery{Namespace: "team", Kind: "Machine", Name: "m"}, mirrortest.Now())
	}
	if diff := cmp.Diff([]string{"team ", "team regarding.kind=Machine,regarding.name=m"}, r.selectors); diff != "" {
		t.Error(diff)
	}
}

func TestEventsAreDropped(t *testing.T) {
	c := eventCache{reader: &eventReader{}}
	now := mirrortest.Now()
	_, _ = c.read(t.Context(), eventQuery{Namespace: "old"}, now)
	_, _ = c.read(t.Context(), eventQuery{Namespace: "new"}, now.Add(eventLife))
	c.drop(now.Add(eventLife + time.Second))
	if _, ok := c.results[eventQuery{Namespace: "new"}]; len(c.results) != 1 || !ok {
		t.Errorf("%d results remain", len(c.results))
	}
	for i := range 2 * maxQueries {
		_, _ = c.read(t.Context(), eventQuery{Namespace: "n", Name: string(rune('a' + i))}, now.Add(time.Duration(i)))
	}
	if len(c.results) > maxQueries {
		t.Errorf("%d results", len(c.results))
	}
}
