package cli

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/slipwayhq/slipway/internal/buildinfo"
	"github.com/slipwayhq/slipway/internal/cli/term"
	"github.com/slipwayhq/slipway/internal/clusterctl/install"
)

// module is the Go module of this program, in which [install.VersionCheck] looks for newer releases.
const module = "github.com/slipwayhq/slipway"

// versionCommand returns the version command, which [verbs] lists.
func versionCommand(e term.Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Print the versions of Slipway and its bundled components",
		Long: `Print the versions of Slipway and its bundled components. A release checks the Go module proxy for a
newer release at most once a day; CLUSTERCTL_DISABLE_VERSIONCHECK=1 or GOPROXY=off disables the
check.`,
		Args: cobra.NoArgs,
	}
	format := term.AddOutputFlag(cmd.Flags(), "short")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		info := buildinfo.Get()
		if err := format.Print(e.Out, info, func(w io.Writer) error { return printVersion(w, info, format.String()) }); err != nil {
			return err
		}
		if hint := updateHint(cmd.Context(), e, info.Version); hint != "" && format.String() == "" {
			_, _ = fmt.Fprintln(e.Err, hint)
		}
		return nil
	}
	return cmd
}

// updateHint returns a message about a newer release, or an empty string if none is known.
func updateHint(ctx context.Context, e term.Env, version string) string {
	found := install.VersionCheck{Module: module, Current: version, Getenv: e.Getenv, Now: e.Now}.Release(ctx)
	if found == "" {
		return ""
	}
	return fmt.Sprintf("Release %s of slipway is available; this is %s.", found, version)
}

func printVersion(w io.Writer, i buildinfo.Info, format string) error {
	if format == "short" {
		_, err := fmt.Fprintln(w, i.Version)
		return err
	}
	_, err := fmt.Fprintf(w, "slipway %s (%s, %s)\nKubernetes %s\nCluster API %s\n", i.Version, i.Platform, i.Go, i.Kubernetes, i.ClusterAPI)
	return err
}
