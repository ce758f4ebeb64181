package image

import (
	"context"
	"io"

	"github.com/spf13/cobra"

	"github.com/slipwayhq/slipway"
	"github.com/slipwayhq/slipway/internal/cli/term"
	"github.com/slipwayhq/slipway/internal/nodeimage"
	"github.com/slipwayhq/slipway/internal/nodeimage/versions"
)

// programPackage is the folder of the main package that is compiled with another Kubernetes version: the control plane
// program. The sources are embedded in this binary.
const programPackage = "internal/controlplane/program"

// addCommand returns the versions add command, for [VersionsCommand].
func addCommand(e term.Env) *cobra.Command {
	h := versionsOptions{env: e}
	cmd := &cobra.Command{
		Use:   "add VERSION",
		Short: "Compile another Kubernetes version for hosted control planes",
		Long: `Compile another Kubernetes version for the hosted control planes of this host from its Go modules:
k8s.io/kubernetes and the modules that are released with it. The command requires the Go toolchain,
a Go module proxy, up to 3 GB in the Go caches and about ten minutes. The result takes about 150 MB.
If the command is interrupted, run it again to continue. An existing version is not changed. Nodes
also need a node image of their version: --node-image builds it.`,
		Example: `  slipway versions add v1.35.4
  slipway versions add v1.35.4 --node-image`,
		Args: term.ExactlyOneArgument("VERSION"),
	}
	h.flag(cmd)
	var cache string
	var image bool
	cmd.Flags().StringVar(&cache, "cache-dir", "", "directory for cached build results (default: slipway/kubernetes in the user's cache directory)")
	cmd.Flags().BoolVar(&image, "node-image", false, "also build the node image of the version (slipway image build --kubernetes-version VERSION)")
	format := term.AddOutputFlag(cmd.Flags())
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		s, _, err := h.store()
		if err != nil {
			return err
		}
		began := e.Now()
		compiler := versions.Compiler{Sources: slipway.Sources, Package: programPackage, CacheDir: cache, Progress: e.Err}
		r, added, err := s.Add(cmd.Context(), args[0], compiler)
		if err != nil {
			return err
		}
		if image {
			if err := buildImage(cmd.Context(), e, r.Version); err != nil {
				return err
			}
		}
		return format.Print(e.Out, versionRow{Release: r}, func(w io.Writer) error {
			switch {
			case r.Included:
				return printLine(w, "Kubernetes %s is included in this build of slipway.", r.Version)
			case !added:
				return printLine(w, "Kubernetes %s is there already.", r.Version)
			}
			return printLine(w, "Kubernetes %s was added in %.0f s and takes %s. Hosted control planes that wait for it start within seconds.", r.Version, e.Now().Sub(began).Seconds(), megabytes(r.Size))
		})
	}
	return cmd
}

func buildImage(ctx context.Context, e term.Env, version string) error {
	c, err := docker()
	if err != nil {
		return err
	}
	defer func() { _ = c.Close() }()
	_, err = nodeimage.Build(ctx, nodeimage.Options{KubernetesVersion: version, Progress: e.Err, Docker: c})
	return err
}
