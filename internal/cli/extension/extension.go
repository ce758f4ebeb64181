// Package extension implements the extension command, which groups subcommands to write, run and inspect Runtime
// Extensions.
package extension

import (
	"github.com/spf13/cobra"

	"github.com/slipwayhq/slipway/internal/cli/argument"
	"github.com/slipwayhq/slipway/internal/cli/env"
	"github.com/slipwayhq/slipway/internal/cli/extension/call"
	"github.com/slipwayhq/slipway/internal/cli/extension/check"
	"github.com/slipwayhq/slipway/internal/cli/extension/delete"
	"github.com/slipwayhq/slipway/internal/cli/extension/example"
	initialize "github.com/slipwayhq/slipway/internal/cli/extension/init"
	"github.com/slipwayhq/slipway/internal/cli/extension/list"
	"github.com/slipwayhq/slipway/internal/cli/extension/openapi"
	"github.com/slipwayhq/slipway/internal/cli/extension/record"
	"github.com/slipwayhq/slipway/internal/cli/extension/refresh"
	"github.com/slipwayhq/slipway/internal/cli/extension/replay"
	"github.com/slipwayhq/slipway/internal/cli/extension/run"
	"github.com/slipwayhq/slipway/internal/cli/extension/update"
)

// Command returns the extension command.
func Command(e env.Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "extension",
		Short: "Write, run and look at Runtime Extensions",
	}
	for _, verb := range []func(env.Env) *cobra.Command{
		call.Command, check.Command, delete.Command, example.Command, initialize.Command, list.Command, openapi.Command, record.Command, refresh.Command,
		replay.Command, run.Command, update.Command,
	} {
		cmd.AddCommand(verb(e))
	}
	argument.Group(cmd)
	return cmd
}
