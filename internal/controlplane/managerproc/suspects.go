package managerproc

import (
	"maps"
	"slices"
	"strings"
	"time"
)

const (
	// asideAfter is the number of crashes during reconciliations of an object after which it is quarantined,
	// because many objects are reconciled at any time. Responses are decoded more rarely, so that one crash
	// suffices for a cluster.
	asideAfter, asideAfterDecoding = 2, 1
	// The quarantine starts with firstAside and is doubled each time, up to longestAside.
	firstAside, longestAside = time.Minute, time.Hour
	// forgottenAfter is the time without a crash after which the failures of an object are forgotten.
	forgottenAfter = time.Hour
	// named limits the number of objects in a message.
	named = 3
)

// suspects counts crashes by subject.
type suspects map[Subject]Quarantined

// crashed counts a crash and returns the newly quarantined subjects.
func (s suspects) crashed(reconciling []Subject, now time.Time) (aside []Quarantined) {
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

// forget removes subjects without recent failures, and returns the quarantined ones.
func (s suspects) forget(now time.Time) (aside []Quarantined) {
	maps.DeleteFunc(s, func(_ Subject, a Quarantined) bool { return now.Sub(a.Until) >= forgottenAfter })
	for _, a := range s {
		if a.Until.After(now) {
			aside = append(aside, a)
		}
	}
	slices.SortFunc(aside, func(a, b Quarantined) int { return strings.Compare(a.Subject.String(), b.Subject.String()) })
	return aside
}

// names lists the subjects for a message.
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
