package hosts

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/slipwayhq/slipway/internal/bundle"
	"github.com/slipwayhq/slipway/internal/cli/term"
	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/nodeimage"
)

// BundleCommand returns the bundle command, for package cli.
func BundleCommand(e term.Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "bundle",
		Short: "Build and carry what turns a Linux host into a node",
		Long: `Build, list, export and import bundles. A bundle contains everything that turns a plain Linux host
with systemd into a Kubernetes node without downloads: kubelet, kubeadm, containerd, runc, CNI
plugins and container images, for one Kubernetes version. The manager copies bundles to hosts over
SSH. They are stored in the data directory, or in the directory of --bundles.`,
	}
	cmd.AddCommand(bundleBuildCommand(e), bundleListCommand(e), bundleExportCommand(e), bundleImportCommand(e), bundleRemoveCommand(e))
	term.MarkGroup(cmd)
	return cmd
}

// bundleFlags select the directory of bundles.
type bundleFlags struct{ dataDir, bundles string }

func addBundleFlags(cmd *cobra.Command) *bundleFlags {
	f := &bundleFlags{}
	term.AddDataDirFlag(cmd.Flags(), &f.dataDir)
	cmd.Flags().StringVar(&f.bundles, "bundles", "", "directory of bundles (default: bundles in the data directory)")
	return f
}

func (f bundleFlags) store(e term.Env) (bundle.Store, error) {
	if f.bundles != "" {
		dir, err := filepath.Abs(f.bundles)
		return bundle.Store{Dir: dir}, err
	}
	dir, err := e.DataDir(f.dataDir)
	return bundle.Store{Dir: dir.Bundles()}, err
}

// bundleRow is a bundle in structured output. Scripts depend on the field names.
type bundleRow struct {
	KubernetesVersion string `json:"kubernetesVersion"`
	Architecture      string `json:"architecture"`
	Digest            string `json:"digest"`
	SizeBytes         int64  `json:"sizeBytes"`
	Dir               string `json:"dir"`
}

func bundleRowOf(b bundle.Bundle) bundleRow {
	return bundleRow{b.KubernetesVersion, b.Architecture, b.Digest, b.Size(), b.Dir}
}

func (r bundleRow) print(w io.Writer) error {
	_, err := fmt.Fprintf(w, "Kubernetes %s for %s, %d MB, in %s\n", r.KubernetesVersion, r.Architecture, r.SizeBytes/1e6, r.Dir)
	return err
}

// normalized returns a version with a leading v.
func normalized(version string) string { return "v" + strings.TrimPrefix(version, "v") }

func bundleBuildCommand(e term.Env) *cobra.Command {
	var o bundle.BuildOptions
	cmd := &cobra.Command{
		Use:   "build [VERSION]",
		Short: "Build the bundle for a Kubernetes version",
		Long: `Build the bundle for a Kubernetes version and the architecture of this machine. The components are
compiled from their Go modules, and the rest comes from Debian, as for node images, whose cached
results are used. The command requires a Go toolchain and mmdebstrap; Docker is not needed.`,
		Example: "  slipway bundle build\n  slipway bundle build v1.35.4",
		Args:    cobra.MaximumNArgs(1),
	}
	f := addBundleFlags(cmd)
	cmd.Flags().BoolVar(&o.Refresh, "refresh", false, "install the updates of Debian")
	cmd.Flags().StringVar(&o.CacheDir, "cache-dir", "", "directory for cached build steps (default: slipway/nodeimage in the user's cache directory)")
	format := term.AddOutputFlag(cmd.Flags())
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		s, err := f.store(e)
		if err != nil {
			return err
		}
		o.KubernetesVersion, o.Progress = nodeimage.DefaultVersion, e.Err
		if len(args) > 0 {
			o.KubernetesVersion = normalized(args[0])
		}
		b, err := s.Build(cmd.Context(), o)
		if err != nil {
			return err
		}
		return format.Print(e.Out, bundleRowOf(b), bundleRowOf(b).print)
	}
	return cmd
}

func bundleListCommand(e term.Env) *cobra.Command {
	cmd := &cobra.Command{Use: "list", Short: "List the bundles", Args: cobra.NoArgs}
	f := addBundleFlags(cmd)
	format := term.AddOutputFlag(cmd.Flags())
	cmd.RunE = func(*cobra.Command, []string) error {
		s, err := f.store(e)
		if err != nil {
			return err
		}
		bundles, problems, err := s.List()
		if err != nil {
			return err
		}
		for _, p := range problems {
			_, _ = fmt.Fprintln(e.Err, p)
		}
		rows := []bundleRow{}
		for _, b := range bundles {
			rows = append(rows, bundleRowOf(b))
		}
		return format.Print(e.Out, rows, func(w io.Writer) error { return printBundles(w, rows) })
	}
	return cmd
}

func printBundles(w io.Writer, rows []bundleRow) error {
	if len(rows) == 0 {
		_, err := fmt.Fprintln(w, "There is no bundle yet; \"slipway bundle build\" makes one.")
		return err
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(t, "KUBERNETES\tARCHITECTURE\tSIZE\tDIGEST")
	for _, r := range rows {
		_, _ = fmt.Fprintf(t, "%s\t%s\t%d MB\t%.12s\n", r.KubernetesVersion, r.Architecture, r.SizeBytes/1e6, r.Digest)
	}
	return t.Flush()
}

func bundleExportCommand(e term.Env) *cobra.Command {
	var output, arch string
	cmd := &cobra.Command{
		Use:     "export VERSION",
		Short:   "Write a bundle to one file, for a machine without network",
		Example: "  slipway bundle export v1.36.3 --to bundle.tar",
		Args:    term.ExactlyOneArgument("VERSION"),
	}
	f := addBundleFlags(cmd)
	cmd.Flags().StringVar(&output, "to", "", "file to write")
	cmd.Flags().StringVar(&arch, "arch", runtime.GOARCH, "architecture of the bundle")
	_ = cmd.MarkFlagRequired("to")
	cmd.RunE = func(_ *cobra.Command, args []string) error {
		s, err := f.store(e)
		if err != nil {
			return err
		}
		b, err := s.Find(normalized(args[0]), arch)
		if err != nil {
			return err
		}
		if err := writeFile(output, b.Export); err != nil {
			return err
		}
		_, err = fmt.Fprintf(e.Err, "Wrote %s.\n", output)
		return err
	}
	return cmd
}

// writeFile writes a new file, which appears when it is complete.
func writeFile(name string, write func(io.Writer) error) error {
	draft, err := os.CreateTemp(filepath.Dir(name), ".slipway-*")
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(draft.Name()) }()
	out := bufio.NewWriterSize(draft, 1<<20)
	if err := write(out); err != nil {
		_ = draft.Close()
		return err
	}
	if err := out.Flush(); err != nil {
		_ = draft.Close()
		return err
	}
	if err := draft.Close(); err != nil {
		return err
	}
	return os.Rename(draft.Name(), name)
}

func bundleImportCommand(e term.Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "import FILE",
		Short: "Read a bundle from a file of \"slipway bundle export\"",
		Args:  term.ExactlyOneArgument("FILE"),
	}
	f := addBundleFlags(cmd)
	format := term.AddOutputFlag(cmd.Flags())
	cmd.RunE = func(_ *cobra.Command, args []string) error {
		s, err := f.store(e)
		if err != nil {
			return err
		}
		file, err := os.Open(args[0])
		if err != nil {
			return fault.New(fault.Invalid, reasonUsage, "the file %s cannot be read", args[0]).From(err)
		}
		defer func() { _ = file.Close() }()
		b, err := s.Import(file) // not buffered: the archive is read in large pieces
		if err != nil {
			return err
		}
		return format.Print(e.Out, bundleRowOf(b), bundleRowOf(b).print)
	}
	return cmd
}

func bundleRemoveCommand(e term.Env) *cobra.Command {
	var arch string
	cmd := &cobra.Command{
		Use:   "remove VERSION",
		Short: "Delete a bundle",
		Long:  "Delete a bundle from this machine. Bundles on hosts are not affected.",
		Args:  term.ExactlyOneArgument("VERSION"),
	}
	f := addBundleFlags(cmd)
	cmd.Flags().StringVar(&arch, "arch", runtime.GOARCH, "architecture of the bundle")
	cmd.RunE = func(_ *cobra.Command, args []string) error {
		s, err := f.store(e)
		if err != nil {
			return err
		}
		b, err := s.Find(normalized(args[0]), arch)
		if err != nil {
			return err
		}
		if err := s.Remove(b); err != nil {
			return err
		}
		_, err = fmt.Fprintf(e.Out, "The bundle for Kubernetes %s was deleted.\n", b.KubernetesVersion)
		return err
	}
	return cmd
}
