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

// initImagesCommand returns the init list-images command.
func initImagesCommand(e term.Env, config *term.SourceFlags) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "list-images",
		Short: "List the container images that init needs",
		Long: `List the images of the providers that "init" installs into the management cluster, with the overrides of the configuration
file, and those of cert-manager where a provider needs it. Without a management cluster, they are those of the first installation.`,
		Example: "  slipway init list-images --infrastructure aws",
		Args:    cobra.NoArgs,
	}
	named := add(cmd.Flags(), "list the images of")
	certManager := cmd.Flags().String("cert-manager", string(certificates.Automatic), "who satisfies the objects of cert-manager, as with init: with builtin and external, images of cert-manager are not needed")
	connection := management.AddClusterScoped(cmd.Flags())
	format := term.Flag(cmd.Flags())
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		mode, err := certificates.ParseMode(*certManager)
		if err != nil {
			return err
		}
		cluster, err := installed(cmd.Context(), e, connection)
		if err != nil {
			return err
		}
		found, notes, err := list(cmd.Context(), e, named, listed{config, mode, cluster})
		if err != nil {
			return err
		}
		if err := remark(e, cluster, found, notes); err != nil {
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

// installed returns the installed providers, or nothing without a management cluster. It fails if a management cluster
// was selected explicitly but is unreachable.
func installed(ctx context.Context, e term.Env, flags *management.Flags) (install.SelectionCluster, error) {
	isNamed := flags.Kubeconfig != "" || flags.Context != "" || flags.DataDir != ""
	c, err := flags.Connect(e)
	if err != nil {
		if isNamed {
			return install.SelectionCluster{}, err
		}
		return install.SelectionCluster{}, nil
	}
	reader, err := Client(c)
	if err != nil {
		return install.SelectionCluster{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	cluster, err := install.ReadCluster(ctx, reader)
	if err != nil && !isNamed {
		return install.SelectionCluster{}, nil
	}
	return cluster, c.Explain(err)
}

// answerTime is the timeout for reading the installed providers.
const answerTime = 10 * time.Second

// remark prints notes about images that are not in the list.
func remark(e term.Env, cluster install.SelectionCluster, found, notes []string) error {
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

// listed configures the list.
type listed struct {
	config      *term.SourceFlags
	certManager certificates.Mode
	cluster     install.SelectionCluster
}

// needsCertManager reports whether init would install cert-manager into a cluster without it.
func (l listed) needsCertManager(external bool) bool {
	return l.certManager == certificates.Install || l.certManager == certificates.Automatic && !external
}

func list(ctx context.Context, e term.Env, named *Flags, l listed) (images, notes []string, err error) {
	loader, err := l.config.Load(ctx, e)
	if err != nil {
		return nil, nil, err
	}
	choices, notes, err := install.Choose(named.Named(), l.cluster.Installed, l.cluster.Builtin)
	if err != nil {
		return nil, nil, err
	}
	var items []install.Item
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
