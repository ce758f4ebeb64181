package provider

import (
	"context"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/slipwayhq/slipway/internal/cli/management"
	"github.com/slipwayhq/slipway/internal/cli/term"
	"github.com/slipwayhq/slipway/internal/clusterctl/certificates"
	"github.com/slipwayhq/slipway/internal/clusterctl/install"
)

// initImagesCommand returns the "init list-images" command of clusterctl, for [InitCommand]. config is its --config
// flag.
func initImagesCommand(e term.Env, config *term.ConfigFlags) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "list-images",
		Short: "List the container images that \"init\" needs",
		Long: `List the images of the providers that "init" installs into the management cluster, with the
overrides of the configuration file, and the cert-manager images if a provider needs cert-manager.
Without a management cluster, list the images of a first installation.`,
		Example: "  slipway init list-images --infrastructure aws",
		Args:    cobra.NoArgs,
	}
	named := addProviderFlags(cmd.Flags(), "list images for")
	certManager := cmd.Flags().String("cert-manager", string(certificates.ModeAutomatic), "implementation of the cert-manager API, as for \"init\"; builtin and external need no cert-manager images")
	connection := management.AddClusterScopedFlags(cmd.Flags())
	format := term.AddOutputFlag(cmd.Flags())
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		mode, err := certificates.ParseMode(*certManager)
		if err != nil {
			return err
		}
		cluster, err := readInstalled(cmd.Context(), e, connection)
		if err != nil {
			return err
		}
		found, notes, err := listImages(cmd.Context(), e, named, imageListOptions{config, mode, cluster})
		if err != nil {
			return err
		}
		if err := printNotes(e, cluster, found, notes); err != nil {
			return err
		}
		return format.Print(e.Out, found, func(w io.Writer) error {
			for _, image := range found {
				if _, err := fmt.Fprintln(w, image); err != nil {
					return err
				}
			}
			return nil
		})
	}
	return cmd
}

// readInstalled returns the installed providers, or nothing without a management cluster. It fails if a management
// cluster was selected explicitly but is unreachable.
func readInstalled(ctx context.Context, e term.Env, flags *management.Flags) (install.ManagementCluster, error) {
	isNamed := flags.Kubeconfig != "" || flags.Context != "" || flags.DataDir != ""
	c, err := flags.Connect(e)
	if err != nil {
		if isNamed {
			return install.ManagementCluster{}, err
		}
		return install.ManagementCluster{}, nil
	}
	reader, err := newClient(c)
	if err != nil {
		return install.ManagementCluster{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	cluster, err := install.ReadCluster(ctx, reader)
	if err != nil && !isNamed {
		return install.ManagementCluster{}, nil
	}
	return cluster, c.Explain(err)
}

// readTimeout is the timeout for reading the installed providers.
const readTimeout = 10 * time.Second

// printNotes prints notes about images that are not in the list.
func printNotes(e term.Env, cluster install.ManagementCluster, found, notes []string) error {
	if note := install.BuiltInNote(cluster.Builtin); note != "" {
		notes = append(notes, note)
	}
	if len(found) == 0 {
		notes = append(notes, "\"init\" needs no image.")
	}
	for _, note := range notes {
		if _, err := fmt.Fprintln(e.Err, note); err != nil {
			return err
		}
	}
	return nil
}

// imageListOptions configures the list.
type imageListOptions struct {
	config      *term.ConfigFlags
	certManager certificates.Mode
	cluster     install.ManagementCluster
}

// needsCertManager reports whether init would install cert-manager into a cluster without it.
func (l imageListOptions) needsCertManager(external bool) bool {
	return l.certManager == certificates.ModeInstall || l.certManager == certificates.ModeAutomatic && !external
}

func listImages(ctx context.Context, e term.Env, named *providerFlags, l imageListOptions) (images, notes []string, err error) {
	loader, err := l.config.Load(ctx, e)
	if err != nil {
		return nil, nil, err
	}
	choices, notes, err := install.Choose(named.Named(), l.cluster.Installed, l.cluster.Builtin)
	if err != nil {
		return nil, nil, err
	}
	var items []install.LoadedProvider
	out := []string{}
	for _, c := range choices {
		item, err := loader.ImagesOf(ctx, c)
		if err != nil {
			return nil, nil, err
		}
		items, out = append(items, item), append(out, item.Images...)
	}
	if install.UsesCertManager(items) && l.needsCertManager(loader.Config.CertManager.ExternallyProvisioned) {
		objects, err := certificates.Manifest(ctx, loader.Config)
		if err != nil {
			return nil, nil, err
		}
		out = append(out, certificates.Images(objects)...)
	}
	slices.Sort(out)
	return slices.Compact(out), notes, nil
}
