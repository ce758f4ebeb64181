package snapshots

import (
	"strings"
	"time"

	"github.com/robfig/cron/v3"

	"github.com/slipwayhq/slipway/internal/fault"
)

// minScheduleInterval is the minimum time between two snapshots of a cluster.
const minScheduleInterval = 5 * time.Minute

// longestBack limits how far back missed times are considered.
const longestBack = 366 * 24 * time.Hour

// Schedule is a parsed spec.schedule of an EtcdSnapshotPolicy, in UTC. [ParseSchedule] returns it.
type Schedule struct{ spec cron.Schedule }

// ParseSchedule parses a schedule. The webhook of EtcdSnapshotPolicies calls it to reject invalid schedules, and their
// controller in each reconciliation. The error message includes examples.
func ParseSchedule(text string) (Schedule, error) {
	invalid := func(err error) error {
		return fault.New(fault.Invalid, "ScheduleInvalid", "Schedule %q cannot be read: use five fields as in cron (minute, hour, day of month, month, day of week), for example \"0 */6 * * *\", or @hourly, @daily, @weekly or @monthly", text).From(err)
	}
	if strings.HasPrefix(text, "@every") || strings.Contains(text, "TZ=") {
		return Schedule{}, invalid(nil)
	}
	of, err := cron.ParseStandard("TZ=UTC " + text)
	if err != nil {
		return Schedule{}, invalid(err)
	}
	if of.Next(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)).IsZero() {
		return Schedule{}, fault.New(fault.Invalid, "ScheduleInvalid", "Schedule %q is never due: use days that exist", text)
	}
	return Schedule{of}, nil
}

// Next returns the first scheduled time after the given time. The EtcdSnapshotPolicy controller requeues for this time.
func (s Schedule) Next(after time.Time) time.Time { return s.spec.Next(after.UTC()) }

// Due returns the latest scheduled time up to now, if it is at least [minScheduleInterval] after the last snapshot.
// Otherwise it returns the zero time. The EtcdSnapshotPolicy controller names the snapshot after it, so each scheduled
// time has at most one snapshot.
func (s Schedule) Due(last, now time.Time) time.Time {
	if earliest := now.Add(-longestBack); last.Before(earliest) {
		last = earliest
	}
	due := s.Next(last)
	if due.IsZero() || due.After(now) {
		return time.Time{}
	}
	// Find the latest time up to now by searching back from now in intervals that double.
	for back := minScheduleInterval; ; back *= 2 {
		from := now.Add(-back)
		if from.Before(last) {
			from = last
		}
		if first := s.Next(from); !first.IsZero() && !first.After(now) {
			for next := first; !next.IsZero() && !next.After(now); next = s.Next(next) {
				due = next
			}
			break
		}
		if !from.After(last) {
			break
		}
	}
	if due.Sub(last) < minScheduleInterval {
		return time.Time{}
	}
	return due
}
