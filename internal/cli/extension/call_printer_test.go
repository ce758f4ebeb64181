package extension

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/slipwayhq/slipway/sdk/extension/recording"
)

// A call is one line, whatever came of it, and never shows a body.
func TestLine(t *testing.T) {
	base := recording.Call{Time: time.Date(2026, 1, 2, 15, 4, 5, 0, time.Local), Hook: "beforeclustercreate", Handler: "check", Object: "Cluster a/b", Code: 200, Seconds: .00234}
	cases := map[string]struct {
		reason string
		change func(*recording.Call)
		want   string
	}{
		"success": {"when, what, how", func(c *recording.Call) { c.Response = `{"status":"Success"}` }, "15:04:05  BeforeClusterCreate  check  Cluster a/b  Success  2.3ms"},
		"blocks":  {"how long", func(c *recording.Call) { c.Response = `{"status":"Success","retryAfterSeconds":10,"message":"wait"}` }, "15:04:05  BeforeClusterCreate  check  Cluster a/b  Success, again in 10s  2.3ms  wait"},
		"failure": {"why, in one line", func(c *recording.Call) { c.Response = `{"status":"Failure","message":"no\nquota"}` }, "15:04:05  BeforeClusterCreate  check  Cluster a/b  Failure  2.3ms  no quota"},
		"long": {"and not for ever", func(c *recording.Call) {
			c.Response = `{"status":"Failure","message":"` + strings.Repeat("ü", 200) + `"}`
		}, "15:04:05  BeforeClusterCreate  check  Cluster a/b  Failure  2.3ms  " + strings.Repeat("ü", 160) + " …"},
		"HTTP":      {"the extension refuses", func(c *recording.Call) { c.Code, c.Response = 404, "not here\n" }, "15:04:05  BeforeClusterCreate  check  Cluster a/b  HTTP 404  2.3ms  not here"},
		"nonsense":  {"no body is shown", func(c *recording.Call) { c.Response = `{"data":"secret"}` }, "15:04:05  BeforeClusterCreate  check  Cluster a/b  invalid response  2.3ms  it is not a response of the hook"},
		"no answer": {"it crashed", func(c *recording.Call) { c.Code, c.Error = 0, "closed" }, "15:04:05  BeforeClusterCreate  check  Cluster a/b  no answer  2.3ms  closed"},
		"discovery": {"it has neither handler nor object", func(c *recording.Call) {
			*c = recording.Call{Time: base.Time, Hook: "discovery", Code: 200, Response: `{"status":"Success"}`}
		}, "15:04:05  Discovery  Success  0s"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := base
			tc.change(&c)
			if got := line(c); got != tc.want {
				t.Errorf("%s: got\n%s, want\n%s", tc.reason, got, tc.want)
			}
		})
	}
}

// A recording that cannot be written is said, and does not end the session.
func TestPrinterRecords(t *testing.T) {
	var out bytes.Buffer
	var said []string
	p := &printer{out: &out, record: func(recording.Call) error { return errors.New("disk full") }, reportError: func(s string) { said = append(said, s) }}
	p.call(recording.Call{Hook: "discovery"})
	if !strings.Contains(out.String(), "Discovery") || len(said) != 1 || !strings.Contains(said[0], "disk full") {
		t.Errorf("%s %q", out.String(), said)
	}
}
