package image

import (
	"errors"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/slipwayhq/slipway/internal/cli/term"
	"github.com/slipwayhq/slipway/internal/controlplane/supervisor"
	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/nodeimage/versions"
)

func removeCommand(e term.Env) *cobra.Command {
	h := host{env: e}
	cmd := &cobra.Command{
		Use:   "remove VERSION",
		Short: "Remove a Kubernetes version that no hosted control plane of this host runs",
		Args:  term.One("VERSION"),
	}
	h.flag(cmd)
	cmd.RunE = func(_ *cobra.Command, args []string) error {
		s, dir, err := h.store()
		if err != nil {
			return err
		}
		version := versions.Name(args[0])
		planes, err := supervisor.Inspect(dir.Planes())
		if err != nil {
			return err
		}
		if err := s.Remove(version, usersOf(version, planes)); err != nil {
			return err
		}
		return say(e.Out, "Kubernetes %s was removed.", version)
	}
	return cmd
}

func exportCommand(e term.Env) *cobra.Command {
	h := host{env: e}
	cmd := &cobra.Command{
		Use:   "export VERSION",
		Short: "Write an added Kubernetes version to an archive for \"versions import\" on another host",
		Example: `  slipway versions export v1.35.4
  slipway versions export v1.35.4 -f - | ssh other slipway versions import -`,
		Args: term.One("VERSION"),
	}
	h.flag(cmd)
	var file string
	cmd.Flags().StringVarP(&file, "file", "f", "", "archive to write; - is standard output (default: kubernetes-VERSION.tar.gz)")
	cmd.RunE = func(_ *cobra.Command, args []string) error {
		s, _, err := h.store()
		if err != nil {
			return err
		}
		version := versions.Name(args[0])
		if file == "-" {
			return s.Export(version, e.Out)
		}
		if file == "" {
			file = "kubernetes-" + version + ".tar.gz"
		}
		if err := exportTo(file, s, version); err != nil {
			return err
		}
		return say(e.Err, "Kubernetes %s was written to %s.", version, file)
	}
	return cmd
}

// exportTo writes the archive atomically.
func exportTo(file string, s versions.Store, version string) error {
	f, err := os.CreateTemp(filepath.Dir(file), ".export-*")
	if err != nil {
		return fault.New(fault.Invalid, "Usage", "the archive cannot be written: %v", err).From(err)
	}
	defer func() { _ = os.Remove(f.Name()) }()
	err = s.Export(version, io.Writer(f))
	if err := errors.Join(err, f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), file)
}
