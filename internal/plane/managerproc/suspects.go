package managerproc

import (
	"maps"
	"slices"
	"strings"
	"time"
)

const (
	// asideAfter is the number of crashes during the reconciliation of an object from which on it is set aside: many are
	// reconciled at any time. Of clusters of which answers are decoded there are few, and one crash is enough.
	asideAfter, asideAfterDecoding = 2, 1
	// The first time it is set aside for firstAside, then for twice as long each time.
	firstAside, longestAside = time.Minute, time.Hour
	// forgottenAfter is how long an object must be reconciled without a crash to be like any other.
	forgottenAfter = time.Hour
	// named is how many of the objects that were being reconciled a message names.
	named = 3
)

// suspects counts the crashes by what was being reconciled.
type suspects map[Subject]Aside

// crashed counts a crash and returns the objects that are newly set aside.
func (s suspects) crashed(reconciling []Subject, now time.Time) (aside []Aside) {
	for _, subject := range reconciling {
		key := subject.anyUID()
		a := s[key]
		a.Subject, a.Failures = subject, a.Failures+1
		a.Until = now
		after := asideAfter
		if key.Work == Decoding {
			after = asideAfterDecoding
		}
		if a.Failures >= after {
			pause := firstAside << min(a.Failures-after, 10)
			a.Until = now.Add(min(pause, longestAside))
			aside = append(aside, a)
		}
		s[key] = a
	}
	return aside
}

// forget drops what has not failed for long, and returns what is set aside now.
func (s suspects) forget(now time.Time) (aside []Aside) {
	maps.DeleteFunc(s, func(_ Subject, a Aside) bool { return now.Sub(a.Until) >= forgottenAfter })
	for _, a := range s {
		if a.Until.After(now) {
			aside = append(aside, a)
		}
	}
	slices.SortFunc(aside, func(a, b Aside) int { return strings.Compare(a.Subject.String(), b.Subject.String()) })
	return aside
}

// names makes a list for people, the longest reconciliation first.
func names(subjects []Subject) string {
	var out []string
	for _, s := range subjects[:min(named, len(subjects))] {
		out = append(out, s.String())
	}
	text := strings.Join(out, ", ")
	if len(subjects) > named {
		text += ", and others"
	}
	return text
}
