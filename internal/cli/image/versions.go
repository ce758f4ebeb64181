package image

import (
	"fmt"
	"io"

	"github.com/moby/moby/client"
	"github.com/spf13/cobra"

	"github.com/slipwayhq/slipway/internal/cli/term"
	"github.com/slipwayhq/slipway/internal/controlplane/datadir"
	"github.com/slipwayhq/slipway/internal/controlplane/supervisor"
	"github.com/slipwayhq/slipway/internal/nodeimage/versions"
)

// VersionsCommand returns the versions command, for package cli.
func VersionsCommand(e term.Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "versions",
		Short: "Manage the Kubernetes versions that this host can run",
		Long: `Manage the Kubernetes versions that this host can run. Slipway includes one version. The operator of
the host adds other versions, for example with "slipway versions add v1.35.4". Simulated clusters
run any version without this.`,
	}
	cmd.AddCommand(versionsListCommand(e), addCommand(e), importCommand(e), exportCommand(e), removeCommand(e))
	term.MarkGroup(cmd)
	return cmd
}

// versionsOptions is the environment of the subcommands, with the --data-dir flag. Each subcommand creates one.
type versionsOptions struct {
	env     term.Env
	dataDir string
}

// flag adds the flag --data-dir to a subcommand.
func (h *versionsOptions) flag(cmd *cobra.Command) {
	term.AddDataDirFlag(cmd.Flags(), &h.dataDir)
}

// store returns the versions in the data directory. It fails if a newer Slipway has written the directory.
func (h *versionsOptions) store() (versions.Store, datadir.Dir, error) {
	dir, err := h.env.DataDir(h.dataDir)
	if err == nil {
		err = datadir.CheckFormat(dir)
	}
	s := versions.LocalStore(dir.Kubernetes())
	s.Now, s.Progress = h.env.Now, h.env.Err
	return s, dir, err
}

// docker returns a Docker client for the node images. "versions add" and "versions list" call it for the images of a
// version. The caller closes it.
func docker() (*client.Client, error) {
	c, err := client.New(client.FromEnv)
	if err != nil {
		return nil, fmt.Errorf("connecting to Docker: %w", err)
	}
	return c, nil
}

// megabytes formats a size for the texts of the versions commands.
func megabytes(bytes int64) string { return fmt.Sprintf("%d MB", (bytes+5e5)/1e6) }

// printLine prints the result of a versions command as one line.
func printLine(w io.Writer, message string, args ...any) error {
	_, err := fmt.Fprintf(w, message+"\n", args...)
	return err
}

// removeCommand returns the versions remove command, for [VersionsCommand].
func removeCommand(e term.Env) *cobra.Command {
	h := versionsOptions{env: e}
	cmd := &cobra.Command{
		Use:   "remove VERSION",
		Short: "Remove a Kubernetes version that no hosted control plane runs",
		Args:  term.ExactlyOneArgument("VERSION"),
	}
	h.flag(cmd)
	cmd.RunE = func(_ *cobra.Command, args []string) error {
		s, dir, err := h.store()
		if err != nil {
			return err
		}
		version := versions.Normalize(args[0])
		planes, err := supervisor.Inspect(dir.Planes())
		if err != nil {
			return err
		}
		if err := s.Remove(version, usersOf(version, planes)); err != nil {
			return err
		}
		return printLine(e.Out, "Kubernetes %s was removed.", version)
	}
	return cmd
}
