// Package consent is how verbs that replace the data of a cluster say what they would do, ask, and do it.
//
// Does: the flags --dry-run, --yes, --wait-timeout and --output of such verbs, and the order of what is said: what would be done, the
// question, what was done.
//
// Never: does it.
//
// Read first: Flags.Run.
package consent

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/slipwayhq/slipway/internal/cli/env"
	"github.com/slipwayhq/slipway/internal/cli/output"
	"github.com/slipwayhq/slipway/internal/clusterctl/progress"
)

// Flags are those of such a verb.
type Flags struct {
	dryRun, yes bool
	timeout     time.Duration
	format      *output.Format
}

// Add adds the flags; dryRun says what is printed with --dry-run.
func Add(set *pflag.FlagSet, dryRun string) *Flags {
	f := &Flags{}
	set.BoolVar(&f.dryRun, "dry-run", false, dryRun)
	set.BoolVarP(&f.yes, "yes", "y", false, "do not ask")
	set.DurationVar(&f.timeout, "wait-timeout", 30*time.Minute, "how long to wait")
	f.format = output.Flag(set)
	return f
}

// Work is what such a verb does.
type Work struct {
	// Verb is what is asked, as "restore"; empty: it is under way, and only followed.
	Verb string
	// Plan is what would be done, as data, and Lines the same for people.
	Plan  any
	Lines []string
	// Do does it, and waits. Done says that it was done in so much time.
	Do   func(context.Context) error
	Done func(took string) string
}

// Run says what would be done, and does it where that is wanted.
func (f *Flags) Run(ctx context.Context, e env.Env, w Work) error {
	tell := func(out io.Writer) error {
		_, err := fmt.Fprintln(out, strings.Join(w.Lines, "\n"))
		return err
	}
	if f.dryRun {
		return f.format.Print(e.Out, w.Plan, tell)
	}
	if err := tell(e.Err); err != nil {
		return err
	}
	if !f.yes && w.Verb != "" {
		if err := e.Confirm(w.Verb); err != nil {
			return err
		}
	}
	ctx, cancel := context.WithTimeout(ctx, f.timeout)
	defer cancel()
	began := e.Now()
	if err := w.Do(ctx); err != nil {
		return err
	}
	return f.format.Print(e.Out, w.Plan, func(out io.Writer) error {
		_, err := fmt.Fprintln(out, w.Done(progress.Elapsed(e.Now().Sub(began))))
		return err
	})
}
