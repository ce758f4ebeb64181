package managerproc

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/slipwayhq/slipway/internal/pause"
)

const (
	// quarantineAfter is the number of crashes during reconciliations of an object after which it is quarantined,
	// because many objects are reconciled at any time. Responses are decoded more rarely, so that one crash
	// suffices for a cluster.
	quarantineAfter, quarantineAfterDecoding = 2, 1
	// The quarantine starts with minQuarantine and is doubled each time, up to maxQuarantine.
	minQuarantine, maxQuarantine = time.Minute, time.Hour
	// forgottenAfter is the time without a crash after which the failures of an object are forgotten.
	forgottenAfter = time.Hour
	// named limits the number of objects in a message.
	named = 3
)

// suspects counts crashes of the manager by subject: the objects that it was reconciling, or the clusters whose
// responses it was decoding. [Run] has it in memory only.
type suspects map[Subject]Quarantined

// crashed counts a crash and returns the newly quarantined subjects. It is called after an exit that the recorded work
// may have caused. assess (run.go) calls it.
func (s suspects) crashed(reconciling []Subject, now time.Time) (aside []Quarantined) {
	for _, subject := range reconciling {
		key := subject.withoutUID()
		a := s[key]
		a.Subject, a.Failures = subject, a.Failures+1
		a.Until = now
		after := quarantineAfter
		if key.Work == Decoding {
			after = quarantineAfterDecoding
		}
		if a.Failures >= after {
			a.Until = now.Add(pause.Backoff(a.Failures-after+1, minQuarantine, maxQuarantine))
			aside = append(aside, a)
		}
		s[key] = a
	}
	return aside
}

// forget removes subjects without recent failures, and returns the quarantined ones. It is called at each start and
// exit of the manager, which receives the result when it starts.
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

// names lists the subjects for a message. [Failure.String] calls it.
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
