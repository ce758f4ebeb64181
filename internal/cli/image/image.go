package image

import (
	"github.com/spf13/cobra"

	"github.com/slipwayhq/slipway/internal/cli/term"
)

// Command returns the image command, for package cli.
func Command(e term.Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "image",
		Short: "Build and list node images, and load container images into nodes",
	}
	cmd.AddCommand(buildCommand(e), imageListCommand(e), loadCommand(e))
	term.MarkGroup(cmd)
	return cmd
}
