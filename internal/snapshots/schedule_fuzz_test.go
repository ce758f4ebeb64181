package snapshots

import (
	"testing"
	"time"
)

// FuzzParse: whatever a user writes is refused, or is due at times that exist.
func FuzzParse(f *testing.F) {
	for _, text := range []string{"0 */6 * * *", "@daily", "*/1 * * * *", "0 0 31 2 *", "0 0 29 2 *", "@every 1s", "TZ=UTC * * * * *", "* * * *", "59 23 31 12 6", "0-59/7 1,2 * JAN MON"} {
		f.Add(text, int64(1767225600), int64(86400))
	}
	f.Fuzz(func(t *testing.T, text string, unix, seconds int64) {
		s, err := ParseSchedule(text)
		if err != nil {
			return
		}
		last := time.Unix(unix%(1<<32), 0)
		now := last.Add(time.Duration(seconds%(7*86400)) * time.Second)
		if next := s.Next(last); !next.IsZero() && !next.After(last) {
			t.Errorf("%q: %s follows %s", text, next, last)
		}
		if due := s.Due(last, now); !due.IsZero() && (due.After(now) || due.Sub(last) < minScheduleInterval) {
			t.Errorf("%q: %s is due at %s after %s", text, due, now, last)
		}
	})
}
