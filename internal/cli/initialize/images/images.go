// Package images is the verb "init list-images".
//
// Does: lists the images of the containers of the providers that "init" would install the first time, and of cert-manager where
// it would be installed.
//
// Never: connects to a cluster.
//
// Read first: Command.
package images

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/slipwayhq/slipway/internal/cli/env"
	"github.com/slipwayhq/slipway/internal/cli/output"
	"github.com/slipwayhq/slipway/internal/cli/providers"
	"github.com/slipwayhq/slipway/internal/cli/source"
	"github.com/slipwayhq/slipway/internal/clusterctl/certificates"
	"github.com/slipwayhq/slipway/internal/clusterctl/installation"
)

// Command builds the verb.
func Command(e env.Env, config *source.Flags) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "list-images",
		Short: "List the container images that init needs",
		Long: `List the images of the providers that "init" installs into a cluster without any, with the overrides of the configuration
file, and those of cert-manager where a provider needs it.`,
		Example: "  slipway init list-images --infrastructure aws",
		Args:    cobra.NoArgs,
	}
	named := providers.Add(cmd.Flags(), "list the images of")
	certManager := cmd.Flags().String("cert-manager", string(certificates.Automatic), "who satisfies the objects of cert-manager, as with init: with builtin and external, images of cert-manager are not needed")
	cmd.Flags().String("kubeconfig", "", "accepted as by clusterctl; the list does not depend on a cluster")
	cmd.Flags().String("kubeconfig-context", "", "accepted as by clusterctl; the list does not depend on a cluster")
	format := output.Flag(cmd.Flags())
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		mode, err := certificates.ParseMode(*certManager)
		if err != nil {
			return err
		}
		found, err := list(cmd.Context(), e, named, listed{config, mode})
		if err != nil {
			return err
		}
		return format.Print(e.Out, found, func(w io.Writer) error {
			_, err := fmt.Fprintln(w, strings.Join(found, "\n"))
			return err
		})
	}
	return cmd
}

// listed says what images are listed for.
type listed struct {
	config      *source.Flags
	certManager certificates.Mode
}

// needsCertManager reports whether init would install cert-manager into a cluster without it.
func (l listed) needsCertManager(external bool) bool {
	return l.certManager == certificates.Install || l.certManager == certificates.Automatic && !external
}

func list(ctx context.Context, e env.Env, named *providers.Flags, l listed) ([]string, error) {
	loader, err := l.config.Load(ctx, e)
	if err != nil {
		return nil, err
	}
	choices, _, err := installation.Choose(named.Named(), nil, nil)
	if err != nil {
		return nil, err
	}
	var items []installation.Item
	var out []string
	for _, c := range choices {
		item, err := loader.ImagesOf(ctx, c)
		if err != nil {
			return nil, err
		}
		items, out = append(items, item), append(out, item.Images...)
	}
	if installation.UsesCertManager(items) && l.needsCertManager(loader.Config.CertManager.ExternallyProvisioned) {
		objects, err := certificates.Manifest(ctx, loader.Config)
		if err != nil {
			return nil, err
		}
		out = append(out, certificates.Images(objects)...)
	}
	slices.Sort(out)
	return slices.Compact(out), nil
}
