package ui

import (
	"cmp"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/slipwayhq/slipway/internal/operate/describe"
	"github.com/slipwayhq/slipway/internal/rootcause"
)

const (
	// maxEntries is the maximum number of rows of a timeline.
	maxEntries = 150
	// buckets is the number of bars of its picture, one a minute.
	buckets = 60
)

// entry is one row of a timeline.
type entry struct {
	At      time.Time
	Of      rootcause.Ref
	What    string // the kind of entry: condition, event, created, deleted, action
	Title   string
	Message string
	// Warning marks a warning, or a condition that is not in its expected status.
	Warning bool
	Count   int32
	// Manager is the component that reported an Event.
	Manager string
}

// timeline is the last hour of a cluster. The page of a cluster shows it.
type timeline struct {
	Entries []entry
	Cut     cut
	Bars    []bar
	Problem string
}

// bar is the number of entries of one minute, and of warnings among them.
type bar struct {
	X, Height, Y int
	Warning      int
	WarningY     int
}

// happened is what is known about the objects of a cluster. The page of a cluster collects it.
type happened struct {
	objects []*unstructured.Unstructured
	events  []event
	removed []removedMachine
	actions []action
}

// newTimeline merges the transitions of conditions, the Events and the actions of the last hour, the latest first. The
// page of a cluster calls it.
func newTimeline(h happened, now time.Time) timeline {
	var all []entry
	for _, u := range h.objects {
		all = append(all, transitions(u, now)...)
	}
	for _, e := range h.events {
		all = append(all, entry{At: e.At, Of: e.Of, What: e.what(), Title: e.Reason, Message: e.Note, Warning: e.Type == "Warning", Count: e.Count})
	}
	for _, r := range h.removed {
		all = append(all, entry{At: r.at, Of: rootcause.RefOf(r.machine), What: "deleted", Title: "Deleted", Count: 1})
	}
	for _, a := range h.actions {
		all = append(all, entry{At: a.At, Of: a.Of, What: "action", Title: a.Controller, Message: a.Text, Warning: a.Failed, Count: a.Count})
	}
	all = slices.DeleteFunc(all, func(e entry) bool { return now.Sub(e.At) > history || e.At.After(now.Add(time.Minute)) })
	slices.SortStableFunc(all, func(a, b entry) int {
		return cmp.Or(b.At.Compare(a.At), cmp.Compare(a.Of.Kind, b.Of.Kind), cmp.Compare(a.Of.Name, b.Of.Name), boolOrder(b.Warning, a.Warning),
			cmp.Compare(a.What, b.What), cmp.Compare(a.Message, b.Message), cmp.Compare(a.Title, b.Title))
	})
	all = mergeConditions(all)
	out := timeline{Bars: newBars(all, now)}
	out.Entries, out.Cut = limit(all, maxEntries)
	return out
}

// mergeConditions merges neighbouring entries about conditions of one object that have changed at the same time and have the
// same message.
func mergeConditions(all []entry) (out []entry) {
	for _, e := range all {
		if n := len(out) - 1; n >= 0 && e.What == "condition" {
			same := out[n]
			same.Title = e.Title
			if same == e {
				out[n].Title += ", " + e.Title
				continue
			}
		}
		out = append(out, e)
	}
	return out
}

// transitions returns the creation, the deletion and the transitions of conditions of an object.
func transitions(u *unstructured.Unstructured, now time.Time) (out []entry) {
	of := rootcause.RefOf(u)
	add := func(at time.Time, what, title, message string, warning bool) {
		if now.Sub(at) <= history {
			out = append(out, entry{At: at, Of: of, What: what, Title: title, Message: message, Warning: warning, Count: 1})
		}
	}
	add(u.GetCreationTimestamp().Time, "created", "Created", "", false)
	if at := u.GetDeletionTimestamp(); at != nil {
		add(at.Time, "deleted", "Deletion requested", "", false)
	}
	for _, c := range describe.ConditionsOf(u) {
		message, good := c.Message, describe.HasExpectedStatus(c, nil)
		if !good {
			message = cmp.Or(c.Message, c.Reason)
		}
		add(c.LastTransitionTime.Time, "condition", c.Type+"="+string(c.Status), message, !good)
	}
	return out
}

// newBars counts the entries of each minute. The picture is 24 units high.
func newBars(all []entry, now time.Time) []bar {
	const height, width = 24, 10
	var counts, warnings [buckets]int
	most := 1
	for _, e := range all {
		i := buckets - 1 - int(now.Sub(e.At)/time.Minute)
		if i < 0 || i >= buckets {
			continue
		}
		counts[i]++
		if e.Warning {
			warnings[i]++
		}
		most = max(most, counts[i])
	}
	var out []bar
	for i, n := range counts {
		if n == 0 {
			continue
		}
		h, w := max(2, n*height/most), warnings[i]*height/most
		out = append(out, bar{X: i * width, Height: h, Y: height - h, Warning: w, WarningY: height - w})
	}
	return out
}
