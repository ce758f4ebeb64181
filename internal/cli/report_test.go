package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/slipwayhq/slipway/internal/fault"
)

// printedResult is an error with the exit code of a result that was already printed.
type printedResult int

func (printedResult) Error() string   { return "printed" }
func (r printedResult) ExitCode() int { return int(r) }

func TestReport(t *testing.T) {
	tests := map[string]struct {
		reason string
		err    error
		code   int
		says   []string
	}{
		"nothing": {"success is silent", nil, exitOK, nil},
		"input": {
			"the user must change something, and reads only that",
			fmt.Errorf("start: %w", fault.New(fault.Invalid, "PortTaken", "port 1 is taken; choose another").From(errors.New("errno 98"))),
			exitInvalid, []string{"slipway: port 1 is taken; choose another\n"},
		},
		"unreachable": {
			"a hint says how to look", fmt.Errorf("list clusters: %w", context.DeadlineExceeded), exitUnreachable, []string{"list clusters", "slipway status"},
		},
		"unreachable, with advice": {
			"one advice is enough", fault.New(fault.Unreachable, "X", "start Docker"), exitUnreachable, []string{"slipway: start Docker\n"},
		},
		"not found":   {"what was named is not there", fault.New(fault.Gone, "X", "no cluster demo"), exitNotFound, []string{"no cluster demo"}},
		"bug":         {"ask for a report", fault.New(fault.Bug, "X", "impossible"), exitBug, []string{"report"}},
		"anything":    {"its text", errors.New("disk full"), exitError, []string{"slipway: disk full\n"}},
		"interrupted": {"as shells say it", fmt.Errorf("wait: %w", context.Canceled), exitInterrupted, []string{"interrupted"}},
		"code":        {"said already", printedResult(17), 17, nil},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			if code := report(&out, "slipway", test.err); code != test.code {
				t.Errorf("code %d, want %d: %s", code, test.code, test.reason)
			}
			if test.says == nil && out.Len() > 0 {
				t.Errorf("it says %q: %s", out.String(), test.reason)
			}
			for _, s := range test.says {
				if !strings.Contains(out.String(), s) {
					t.Errorf("%q does not say %q: %s", out.String(), s, test.reason)
				}
			}
		})
	}
}
