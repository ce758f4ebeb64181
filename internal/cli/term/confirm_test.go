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

// Nothing is done before a person has read what it is and has agreed.
func TestRun(t *testing.T) {
	for name, tc := range map[string]struct {
		args   []string
		verb   string
		answer string
		done   bool
		out    string // the beginning
	}{
		"agreed":    {nil, "restore", "y\n", true, "It took 0s"},
		"refused":   {nil, "restore", "n\n", false, ""},
		"no answer": {nil, "restore", "", false, ""},
		"unasked":   {[]string{"-y"}, "restore", "", true, "It took"},
		"under way": {nil, "", "", true, "It took"},
		"dry run":   {[]string{"--dry-run"}, "restore", "y\n", false, "All is lost."},
		"data":      {[]string{"--dry-run", "-o", "json"}, "restore", "", false, "{\n  \"a\": 1\n}"},
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
			Verb: tc.verb, Plan: map[string]int{"a": 1}, Lines: []string{"All is lost."},
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
