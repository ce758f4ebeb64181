package extension

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/slipwayhq/slipway/internal/cli/term"
	"github.com/slipwayhq/slipway/internal/extensiontools"
	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/sdk/extension/recording"
)

// replayOptions holds the options of the command.
type replayOptions struct {
	env     term.Env
	format  *term.Format
	handler string
	within  time.Duration
}

// replayCommand returns the extension replay command, for [Command].
func replayCommand(e term.Env) *cobra.Command {
	o := replayOptions{env: e}
	cmd := &cobra.Command{
		Use:   "replay FILE -- COMMAND [ARGUMENTS]",
		Short: "Replay recorded calls with another build and show differences",
		Long: `Start an extension, send it the requests of a recording byte for byte and in order, and show where
its responses differ from the recorded responses. No management cluster is required. The exit code
is 1 if a response differs.`,
		Example: "  slipway extension replay calls.jsonl -- go run .",
	}
	o.format = term.AddOutputFlag(cmd.Flags())
	cmd.Flags().StringVar(&o.handler, "handler", "", "replay only the calls of this handler")
	cmd.Flags().DurationVar(&o.within, "start-timeout", 3*time.Minute, "how long the extension may take to start, including compilation")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if len(args) < 1 || cmd.ArgsLenAtDash() == 0 {
			return fault.New(fault.Invalid, "Usage", "the file of the recording is missing before \"--\"; see %q", cmd.CommandPath()+" --help")
		}
		calls, err := recording.ReadFile(args[0])
		if err != nil {
			return fault.New(fault.Invalid, "Recording", "the recording cannot be read: %v", err)
		}
		return o.run(cmd.Context(), calls, args[1:])
	}
	return cmd
}

func (o replayOptions) run(ctx context.Context, calls []recording.Call, command []string) error {
	process, err := extensiontools.StartLocal(ctx, extensiontools.LocalOptions{Command: command, Environment: os.Environ(), Out: o.env.Err, Within: o.within})
	if err != nil {
		return err
	}
	defer process.Stop()
	results, err := extensiontools.Replay(ctx, calls, extensiontools.ReplayTarget{URL: process.URL, Client: process.Client, Now: o.env.Now},
		func(c recording.Call) bool { return o.handler == "" || strings.EqualFold(c.Handler, o.handler) }, o.show)
	if err != nil {
		return err
	}
	if len(results) == 0 {
		return fault.New(fault.Gone, "Recording", "the recording has no call to repeat")
	}
	if err := o.format.Print(o.env.Out, results, func(w io.Writer) error { return summary(w, results) }); err != nil {
		return err
	}
	if n := countDifferences(results); n > 0 {
		return fault.New(fault.Transient, "Differs", "%d of %d responses differ", n, len(results))
	}
	return nil
}

// show prints one result as text. Structured output is printed at the end.
func (o replayOptions) show(r extensiontools.ReplayResult) {
	if o.format.String() == "" {
		_, _ = io.WriteString(o.env.Out, replayText(r))
	}
}

func replayText(r extensiontools.ReplayResult) string {
	var b strings.Builder
	verdict := "same"
	if len(r.Differences) > 0 {
		verdict = "differs"
	}
	fields := []string{fmt.Sprintf("%d", r.Number), hookName(r.Hook)}
	for _, f := range []string{r.Handler, r.Object} {
		if f != "" {
			fields = append(fields, f)
		}
	}
	took := time.Duration(r.Seconds * float64(time.Second)).Round(100 * time.Microsecond)
	fields = append(fields, verdict, took.String())
	if r.Redacted {
		fields = append(fields, "the data of Secrets was replaced in the recording")
	}
	b.WriteString(strings.Join(fields, "  ") + "\n")
	for _, d := range r.Differences {
		b.WriteString("    " + d + "\n")
	}
	return b.String()
}

// summary prints the numbers of repeated calls and of differences below the results.
func summary(w io.Writer, results []extensiontools.ReplayResult) error {
	_, err := fmt.Fprintf(w, "%d calls repeated, %d responses differ.\n", len(results), countDifferences(results))
	return err
}

func countDifferences(results []extensiontools.ReplayResult) (n int) {
	for _, r := range results {
		if len(r.Differences) > 0 {
			n++
		}
	}
	return n
}
