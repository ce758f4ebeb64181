package extension

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/uuid"
	runtimev1 "sigs.k8s.io/cluster-api/api/runtime/v1beta2"

	"github.com/slipwayhq/slipway/internal/cli/management"
	"github.com/slipwayhq/slipway/internal/cli/term"
	"github.com/slipwayhq/slipway/internal/extensiontools"
)

// refreshCommand returns the extension refresh command, for [Command].
func refreshCommand(e term.Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "refresh EXTENSION",
		Short: "Rediscover an extension immediately",
		Long: `Rediscover an extension immediately instead of at the next regular discovery, and print its
handlers. Cached responses of the extension are discarded: each cluster calls the extension at its
next reconciliation. Use this command after you replace an extension with another version.`,
		Example: "  slipway extension refresh my-extension",
		Args:    term.ExactlyOneArgument("EXTENSION"),
	}
	flags := management.AddClusterScopedFlags(cmd.Flags())
	format := term.AddOutputFlag(cmd.Flags())
	within := cmd.Flags().Duration("timeout", time.Minute, "how long to wait for the discovery")
	cmd.RunE = flags.RunE(e, func(ctx context.Context, c *management.Connection, args []string) error {
		ctx, cancel := context.WithTimeout(ctx, *within)
		defer cancel()
		config, err := extensiontools.RefreshDiscovery(ctx, c.Client, args[0], string(uuid.NewUUID()))
		if err != nil {
			return err
		}
		row := listRows([]runtimev1.ExtensionConfig{*config})[0]
		return format.Print(e.Out, row, func(w io.Writer) error { return refreshText(w, row) })
	})
	return cmd
}

func refreshText(w io.Writer, r extensionRow) error {
	_, err := fmt.Fprintf(w, "The management cluster has discovered extension %q: %d handlers.\n", r.Name, len(r.Handlers))
	for _, h := range r.Handlers {
		if err == nil {
			_, err = fmt.Fprintf(w, "  %s  %s, timeout %ds, failure policy %s\n", h.Name, h.Hook, h.TimeoutSeconds, h.FailurePolicy)
		}
	}
	return err
}
