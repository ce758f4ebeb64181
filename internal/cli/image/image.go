package image

import (
	"github.com/spf13/cobra"

	"github.com/slipwayhq/slipway/internal/cli/argument"
	"github.com/slipwayhq/slipway/internal/cli/env"
	"github.com/slipwayhq/slipway/internal/cli/image/build"
	"github.com/slipwayhq/slipway/internal/cli/image/list"
	"github.com/slipwayhq/slipway/internal/cli/image/load"
)

// Command returns the image command.
func Command(e env.Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "image",
		Short: "Build and list the images of nodes in containers, and load images of Pods into nodes",
	}
	cmd.AddCommand(build.Command(e), list.Command(e), load.Command(e))
	argument.Group(cmd)
	return cmd
}
