package image

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/slipwayhq/slipway/internal/cli/term"
	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/nodeimage/versions"
)

// importCommand returns the versions import command, for [VersionsCommand].
func importCommand(e term.Env) *cobra.Command {
	h := versionsOptions{env: e}
	cmd := &cobra.Command{
		Use:   "import FILE",
		Short: "Import a Kubernetes version from an archive of \"versions export\"",
		Long: `Import a Kubernetes version from an archive that "slipway versions export" wrote on a host with the
same operating system, architecture and release of Slipway. The import requires neither a network
nor a Go toolchain. The archive contains a program that the hosted control planes of this host run:
import only archives that you trust, or compare the archive with a checksum from another source with
--sha256. "-" reads standard input.`,
		Example: `  slipway versions import kubernetes-v1.35.4.tar.gz
  slipway versions import kubernetes-v1.35.4.tar.gz --sha256 "$(cut -d' ' -f1 kubernetes-v1.35.4.tar.gz.sha256)"`,
		Args: term.ExactlyOneArgument("FILE"),
	}
	h.flag(cmd)
	var checksum string
	cmd.Flags().StringVar(&checksum, "sha256", "", "expected SHA-256 checksum of the archive in hexadecimal; any other archive is rejected")
	format := term.AddOutputFlag(cmd.Flags())
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if sum, err := hex.DecodeString(checksum); cmd.Flags().Changed("sha256") && (err != nil || len(sum) != sha256.Size) {
			return fault.New(fault.Invalid, "Usage", "--sha256 %q is no SHA-256 checksum: write 64 hexadecimal digits", checksum)
		}
		s, _, err := h.store()
		if err != nil {
			return err
		}
		in := e.In
		if args[0] != "-" {
			f, err := os.Open(args[0])
			if err != nil {
				return fault.New(fault.Invalid, "Usage", "the archive cannot be read: %v", err).From(err)
			}
			defer func() { _ = f.Close() }()
			in = f
		}
		r, added, err := s.Import(in, checksum)
		if err != nil {
			return err
		}
		return format.Print(e.Out, versionRow{Release: r}, func(w io.Writer) error {
			if !added {
				return printLine(w, "Kubernetes %s is there already.", r.Version)
			}
			return printLine(w, "Kubernetes %s was added and takes %s. Hosted control planes that wait for it start within seconds.", r.Version, megabytes(r.Size))
		})
	}
	return cmd
}

// exportCommand returns the versions export command, for [VersionsCommand].
func exportCommand(e term.Env) *cobra.Command {
	h := versionsOptions{env: e}
	cmd := &cobra.Command{
		Use:   "export VERSION",
		Short: "Export an added Kubernetes version to an archive for another host",
		Example: `  slipway versions export v1.35.4
  slipway versions export v1.35.4 -f - | ssh other slipway versions import -`,
		Args: term.ExactlyOneArgument("VERSION"),
	}
	h.flag(cmd)
	var file string
	cmd.Flags().StringVarP(&file, "file", "f", "", "archive to write; - writes to standard output (default: kubernetes-VERSION.tar.gz)")
	cmd.RunE = func(_ *cobra.Command, args []string) error {
		s, _, err := h.store()
		if err != nil {
			return err
		}
		version := versions.Normalize(args[0])
		if file == "-" {
			return s.Export(version, e.Out)
		}
		if file == "" {
			file = "kubernetes-" + version + ".tar.gz"
		}
		if err := exportTo(file, s, version); err != nil {
			return err
		}
		return printLine(e.Err, "Kubernetes %s was written to %s.", version, file)
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
