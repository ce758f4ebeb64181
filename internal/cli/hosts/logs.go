package hosts

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/slipwayhq/slipway/internal/cli/management"
	"github.com/slipwayhq/slipway/internal/cli/term"
	"github.com/slipwayhq/slipway/internal/redact"
	"github.com/slipwayhq/slipway/internal/ssh/remote"
)

// logsCommand returns the "hosts logs" command, for [Command]. "slipway logs node" shows the same journal by the name
// of a node (package cluster).
func logsCommand(e term.Env) *cobra.Command {
	var unit string
	var lines int
	cmd := &cobra.Command{
		Use:     "logs NAME",
		Short:   "Show the journal of a unit on a host",
		Long:    "Show the journal of a unit on a host, or with --unit bootstrap the output of the bootstrap data, which can\ncontain secrets.",
		Example: "  slipway hosts logs rack1-1\n  slipway hosts logs rack1-1 --unit bootstrap",
		Args:    term.ExactlyOneArgument("NAME"),
	}
	connection := management.AddFlags(cmd.Flags())
	cmd.Flags().StringVar(&unit, "unit", "kubelet", "systemd unit, such as kubelet or containerd, or bootstrap")
	cmd.Flags().IntVar(&lines, "tail", 100, "number of recent `LINES` to show")
	cmd.RunE = connection.RunE(e, func(ctx context.Context, c *management.Connection, args []string) error {
		host, err := getHost(ctx, c, args[0])
		if err != nil {
			return err
		}
		pool := remote.NewPool(remote.Limits{})
		defer pool.Close()
		connected, err := connect(ctx, c, pool, host)
		if err != nil {
			return err
		}
		text, err := connected.Logs(ctx, unit, lines)
		if err != nil {
			return err
		}
		_, err = redact.NewEscapeWriter(e.Out).Write(text)
		return err
	})
	return cmd
}
