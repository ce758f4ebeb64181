// Package version is the verb "version".
//
// Does: prints which build this is.
//
// Never: asks a server.
//
// Read first: Command.
package version

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/slipwayhq/slipway/internal/buildinfo"
	"github.com/slipwayhq/slipway/internal/cli/env"
	"github.com/slipwayhq/slipway/internal/cli/output"
)

// Command builds the verb.
func Command(e env.Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Print the version of slipway and of what it carries",
		Args:  cobra.NoArgs,
	}
	format := output.Flag(cmd.Flags(), "short")
	cmd.RunE = func(*cobra.Command, []string) error {
		info := buildinfo.Get()
		return format.Print(e.Out, info, func(w io.Writer) error { return text(w, info, format.String()) })
	}
	return cmd
}

func text(w io.Writer, i buildinfo.Info, format string) error {
	if format == "short" {
		_, err := fmt.Fprintln(w, i.Version)
		return err
	}
	_, err := fmt.Fprintf(w, "slipway %s (%s, %s)\nKubernetes %s\nCluster API %s\n", i.Version, i.Platform, i.Go, i.Kubernetes, i.ClusterAPI)
	return err
}
