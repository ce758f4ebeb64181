package term

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/slipwayhq/slipway/internal/operate/progress"
)

// ConfirmFlags holds the flags of a command that replaces the data or keys of a cluster: "restore controlplane",
// "recover controlplane" and "rotate" print a plan, prompt for confirmation and wait ([ConfirmFlags.Run]).
type ConfirmFlags struct {
	dryRun, yes bool
	timeout     *time.Duration
	format      *Format
}

// AddConfirmFlags adds the flags; dryRun is the usage text of --dry-run.
func AddConfirmFlags(set *pflag.FlagSet, dryRun string) *ConfirmFlags {
	f := &ConfirmFlags{}
	set.BoolVar(&f.dryRun, "dry-run", false, dryRun)
	set.BoolVarP(&f.yes, "yes", "y", false, "skip the confirmation prompt")
	f.timeout = AddWaitTimeout(set, 30*time.Minute, "how long to wait")
	f.format = AddOutputFlag(set)
	return f
}

// Plan is planned work, which is printed as text or in structured output. The packages operate/rotate,
// operate/encryptionkeys and operate/etcdrecovery have types that implement it.
type Plan interface {
	// Lines describes the plan as text.
	Lines() []string
	// NeedsConfirmation is false if the work is already in progress, so that the command only waits for it.
	NeedsConfirmation() bool
}

// ConfirmedWork describes the work of such a command, for [ConfirmFlags.Run].
type ConfirmedWork struct {
	// Verb is the action to confirm, such as "restore".
	Verb string
	// Plan is the planned work.
	Plan Plan
	// Do does the work and waits for its completion. Done returns the final message with the duration.
	Do   func(context.Context) error
	Done func(took string) string
}

// Run prints the plan, and does the work after confirmation unless this is a dry run. The plan is printed on standard
// error, so that standard output contains only the result.
func (f *ConfirmFlags) Run(ctx context.Context, e Env, w ConfirmedWork) error {
	tell := func(out io.Writer) error {
		_, err := fmt.Fprintln(out, strings.Join(w.Plan.Lines(), "\n"))
		return err
	}
	if f.dryRun {
		return f.format.Print(e.Out, w.Plan, tell)
	}
	if err := tell(e.Err); err != nil {
		return err
	}
	if !f.yes && w.Plan.NeedsConfirmation() {
		if err := e.Confirm(w.Verb); err != nil {
			return err
		}
	}
	ctx, cancel := context.WithTimeout(ctx, *f.timeout)
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
