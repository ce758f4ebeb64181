// Command bench measures Slipway. See docs/bench.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/slipwayhq/slipway/test/bench/fleet"
	"github.com/slipwayhq/slipway/test/bench/hook"
	"github.com/slipwayhq/slipway/test/bench/launch"
	"github.com/slipwayhq/slipway/test/bench/soak"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := newCommand().ExecuteContext(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		stop()
		os.Exit(1)
	}
}

func newCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "bench", Short: "Measure Slipway on this machine", SilenceUsage: true, SilenceErrors: true}
	cmd.AddCommand(launch.Command(), launch.TimelineCommand(), launch.VerbsCommand(), fleet.Command(), fleet.IsolationCommand(),
		soak.Command(), hook.Command(), hook.ServeCommand())
	return cmd
}
