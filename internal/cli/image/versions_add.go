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

// programPackage is the folder of the main package that is compiled.
const programPackage = "internal/controlplane/program"

func addCommand(e term.Env) *cobra.Command {
	h := versionsOptions{env: e}
	cmd := &cobra.Command{
		Use:   "add VERSION",
		Short: "Compile a further Kubernetes version for hosted control planes of this host",
		Long: `Compile a further Kubernetes version for hosted control planes of this host, from its Go modules: k8s.io/kubernetes
and what is released with it. It needs the Go toolchain, a Go module proxy, up to 3 GB in Go's caches and some ten
minutes; the result takes about 150 MB. Interrupted, it continues where it was. A version that is there already is left
as it is. Nodes need a node image of their version too: --node-image builds it.`,
		Example: `  slipway versions add v1.35.4
  slipway versions add v1.35.4 --node-image`,
		Args: term.ExactlyOneArgument("VERSION"),
	}
	h.flag(cmd)
	var cache string
	var image bool
	cmd.Flags().StringVar(&cache, "cache-dir", "", "folder that keeps the results of compiling (default: slipway/kubernetes in the user's cache folder)")
	cmd.Flags().BoolVar(&image, "node-image", false, "build the node image of the version too (slipway image build --kubernetes-version VERSION)")
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
