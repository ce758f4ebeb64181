package generate

import (
	"github.com/spf13/cobra"

	"github.com/slipwayhq/slipway/internal/cli/argument"
	"github.com/slipwayhq/slipway/internal/cli/env"
	"github.com/slipwayhq/slipway/internal/cli/generate/cluster"
	"github.com/slipwayhq/slipway/internal/cli/generate/provider"
	"github.com/slipwayhq/slipway/internal/cli/generate/yaml"
)

// Command returns the generate command.
func Command(e env.Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "generate",
		Short: "Print manifests made from templates",
	}
	cmd.AddCommand(cluster.Command(e), provider.Command(e), yaml.Command(e))
	argument.Group(cmd)
	return cmd
}
