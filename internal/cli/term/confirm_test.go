package term_test

import (
	"bytes"
	"context"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"

	"github.com/slipwayhq/slipway/internal/cli/term"
)

// testPlan is a plan with one field.
type testPlan struct {
	A       int `json:"a"`
	started bool
}

func (testPlan) Lines() []string           { return []string{"All is lost."} }
func (p testPlan) NeedsConfirmation() bool { return !p.started }

// Nothing is done before a person has read what it is and has agreed.
func TestRun(t *testing.T) {
	for name, tc := range map[string]struct {
		args    []string
		started bool
		answer  string
		done    bool
		out     string // the beginning
	}{
		"agreed":    {nil, false, "y\n", true, "It took 0s"},
		"refused":   {nil, false, "n\n", false, ""},
		"no answer": {nil, false, "", false, ""},
		"unasked":   {[]string{"-y"}, false, "", true, "It took"},
		"under way": {nil, true, "", true, "It took"},
		"dry run":   {[]string{"--dry-run"}, false, "y\n", false, "All is lost."},
		"data":      {[]string{"--dry-run", "-o", "json"}, false, "", false, "{\n  \"a\": 1\n}"},
	} {
		set := pflag.NewFlagSet("", pflag.ContinueOnError)
		f := term.AddConfirmFlags(set, "print it")
		if err := set.Parse(tc.args); err != nil {
			t.Fatal(err)
		}
		var out, said bytes.Buffer
		e := term.Env{In: strings.NewReader(tc.answer), Out: &out, Err: &said, Now: func() time.Time { return time.Unix(0, 0) }}
		done := false
		err := f.Run(t.Context(), e, term.ConfirmedWork{
			Verb: "restore", Plan: testPlan{A: 1, started: tc.started},
			Do: func(ctx context.Context) error {
				_, bounded := ctx.Deadline()
				done = bounded && strings.HasPrefix(said.String(), "All is lost.\n")
				return nil
			},
			Done: func(took string) string { return "It took " + took },
		})
		if done != tc.done || (err == nil) != (tc.done || strings.HasPrefix(strings.Join(tc.args, " "), "--dry-run")) || !strings.HasPrefix(out.String(), tc.out) {
			t.Errorf("%s: done %v, %v, printed %q", name, done, err, out.String())
		}
	}
}
