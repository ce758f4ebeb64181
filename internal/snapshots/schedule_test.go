package snapshots

import (
	"strings"
	"testing"
	"time"
)

func at(text string) time.Time {
	t, err := time.Parse("2006-01-02 15:04:05", text)
	if err != nil {
		panic(err)
	}
	return t
}

func TestDue(t *testing.T) {
	for name, test := range map[string]struct {
		schedule, last, now, want string
		reason                    string
	}{
		"not yet":          {"0 * * * *", "2026-11-25 12:00:00", "2026-11-25 12:59:59", "", "the hour is not over"},
		"just":             {"0 * * * *", "2026-11-25 12:00:00", "2026-11-25 13:00:00", "2026-11-25 13:00:00", "it is due at its second"},
		"missed some":      {"0 * * * *", "2026-11-25 02:00:00", "2026-11-25 12:30:00", "2026-11-25 12:00:00", "the last is made up for, and no other"},
		"missed a year":    {"0 0 * * *", "2020-01-01 00:00:00", "2026-11-25 12:30:00", "2026-11-25 00:00:00", ""},
		"monthly":          {"@monthly", "2026-01-01 00:00:00", "2026-11-25 12:30:00", "2026-11-01 00:00:00", ""},
		"too soon":         {"* * * * *", "2026-11-25 12:00:30", "2026-11-25 12:04:10", "", "five minutes have to lie between two"},
		"each five":        {"* * * * *", "2026-11-25 12:00:00", "2026-11-25 12:05:10", "2026-11-25 12:05:00", ""},
		"the last of many": {"*/15 * * * *", "2026-11-25 11:50:00", "2026-11-25 12:31:00", "2026-11-25 12:30:00", ""},
	} {
		s, err := ParseSchedule(test.schedule)
		if err != nil {
			t.Fatal(err)
		}
		got := s.Due(at(test.last), at(test.now))
		if test.want == "" && !got.IsZero() || test.want != "" && !got.Equal(at(test.want)) {
			t.Errorf("%s: %s: got %s, want %q", name, test.reason, got, test.want)
		}
	}
}

func TestParse(t *testing.T) {
	for _, bad := range []string{"", "hourly", "* * * *", "61 * * * *", "@every 1s", "TZ=Europe/Vienna 0 * * * *", "CRON_TZ=UTC 0 * * * *", "0 0 31 2 *"} {
		if _, err := ParseSchedule(bad); err == nil || !strings.Contains(err.Error(), "use ") {
			t.Errorf("%q: %v", bad, err)
		}
	}
	s, err := ParseSchedule("30 6 * * *")
	if err != nil {
		t.Fatal(err)
	}
	east := time.FixedZone("east", 3600)
	if got, want := s.Next(time.Date(2026, 11, 25, 7, 0, 0, 0, east)), at("2026-11-25 06:30:00"); !got.Equal(want) {
		t.Errorf("it is in UTC: got %s, want %s", got, want)
	}
}
