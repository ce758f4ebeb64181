package image

import (
	"fmt"
	"io"
	"strings"

	"github.com/moby/moby/client"
	"github.com/spf13/cobra"

	"github.com/slipwayhq/slipway/internal/cli/term"
	"github.com/slipwayhq/slipway/internal/nodeimage"
)

// buildCommand returns the image build command, for [Command].
func buildCommand(e term.Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "build",
		Short: "Build the node image for a Kubernetes version",
		Long: `Build the node image for a Kubernetes version. The Kubernetes components are compiled from their Go
modules, and the rest is installed from Debian. Results are cached, so that a second build takes
about a second. The command requires Docker, a Go toolchain and mmdebstrap on this host.`,
		Example: `  slipway image build
  slipway image build --control-plane
  slipway image build --refresh`,
		Args: cobra.NoArgs,
	}
	o := nodeimage.Options{Progress: e.Err}
	cmd.Flags().StringVar(&o.KubernetesVersion, "kubernetes-version", nodeimage.DefaultVersion, "Kubernetes version of the nodes")
	cmd.Flags().BoolVar(&o.ControlPlane, "control-plane", false, "add the components of a control plane on the node; a HostedControlPlane does not need them")
	cmd.Flags().BoolVar(&o.Refresh, "refresh", false, "install the updates of Debian; nodes receive them when they are replaced (slipway rollout restart)")
	cmd.Flags().StringVar(&o.CacheDir, "cache-dir", "", "directory for cached build steps (default: slipway/nodeimage in the user's cache directory)")
	format := term.AddOutputFlag(cmd.Flags())
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		docker, err := client.New(client.FromEnv)
		if err != nil {
			return fmt.Errorf("connecting to Docker: %w", err)
		}
		defer func() { _ = docker.Close() }()
		o.Docker = docker
		if !strings.HasPrefix(o.KubernetesVersion, "v") {
			o.KubernetesVersion = "v" + o.KubernetesVersion
		}
		image, err := nodeimage.Build(cmd.Context(), o)
		if err != nil {
			return err
		}
		return format.Print(e.Out, newImageRow(image), func(w io.Writer) error {
			_, err := fmt.Fprintln(w, image.Ref)
			return err
		})
	}
	return cmd
}
