package extension

import (
	"context"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/util/duration"
	runtimev1 "sigs.k8s.io/cluster-api/api/runtime/v1beta2"

	"github.com/slipwayhq/slipway/internal/cli/management"
	"github.com/slipwayhq/slipway/internal/cli/term"
	"github.com/slipwayhq/slipway/internal/extensiontools"
)

// listCommand returns the extension list command, for [Command].
func listCommand(e term.Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "list",
		Short:   "List the extensions of the management cluster and their handlers",
		Example: "  slipway extension list\n  slipway extension list -o yaml",
		Args:    cobra.NoArgs,
	}
	flags := management.AddClusterScopedFlags(cmd.Flags())
	format := term.AddOutputFlag(cmd.Flags())
	cmd.RunE = flags.RunE(e, func(ctx context.Context, c *management.Connection, _ []string) error {
		configs, err := extensiontools.ListExtensions(ctx, c.Client)
		if err != nil {
			return err
		}
		rows := listRows(configs)
		return format.Print(e.Out, rows, func(w io.Writer) error { return printExtensions(w, e.Now(), rows) })
	})
	return cmd
}

// extensionRow is an extension in the structured output of "list" and "refresh". Scripts depend on the field names.
type extensionRow struct {
	Name string `json:"name"`
	// At is its URL, or service namespace/name.
	At string `json:"at"`
	// Discovered is the status of the condition: True, False or Unknown. Message is its message.
	Discovered string    `json:"discovered"`
	Message    string    `json:"message,omitempty"`
	Created    time.Time `json:"created"`
	// Run is true if `slipway extension run` registered it.
	Run      bool         `json:"run,omitempty"`
	Handlers []handlerRow `json:"handlers,omitempty"`
}

// handlerRow is a handler in structured output.
type handlerRow struct {
	Name           string `json:"name"`
	Hook           string `json:"hook"`
	APIVersion     string `json:"apiVersion"`
	TimeoutSeconds int32  `json:"timeoutSeconds"`
	FailurePolicy  string `json:"failurePolicy"`
}

// listRows converts extensions to structured output. refreshCommand converts one extension with it.
func listRows(configs []runtimev1.ExtensionConfig) []extensionRow {
	rows := []extensionRow{}
	for _, c := range configs {
		_, run := c.Annotations[extensiontools.RunAnnotation]
		r := extensionRow{Name: c.Name, At: endpointText(c.Spec.ClientConfig), Discovered: "Unknown", Created: c.CreationTimestamp.UTC(), Run: run}
		if d := meta.FindStatusCondition(c.Status.Conditions, runtimev1.ExtensionConfigDiscoveredCondition); d != nil {
			r.Discovered, r.Message = string(d.Status), d.Message
		}
		for _, h := range c.Status.Handlers {
			r.Handlers = append(r.Handlers, handlerRow{h.Name, h.RequestHook.Hook, h.RequestHook.APIVersion, h.TimeoutSeconds, string(h.FailurePolicy)})
		}
		rows = append(rows, r)
	}
	return rows
}

func endpointText(c runtimev1.ClientConfig) string {
	if c.URL != "" {
		return c.URL
	}
	return "service " + c.Service.Namespace + "/" + c.Service.Name
}

func printExtensions(w io.Writer, now time.Time, rows []extensionRow) error {
	if len(rows) == 0 {
		_, err := fmt.Fprintln(w, "There is no extension; \"slipway extension init\" writes one, \"slipway extension run\" registers it.")
		return err
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(t, "EXTENSION\tDISCOVERED\tAGE\tAT\tHANDLERS")
	for _, r := range rows {
		var handlers []string
		for _, h := range r.Handlers {
			short, _, _ := strings.Cut(h.Name, ".")
			handlers = append(handlers, fmt.Sprintf("%s (%s)", short, h.Hook))
		}
		_, _ = fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\n", r.Name, r.Discovered, duration.HumanDuration(now.Sub(r.Created)), r.At, strings.Join(handlers, ", "))
	}
	if err := t.Flush(); err != nil {
		return err
	}
	for _, r := range rows {
		if r.Discovered != "True" && r.Message != "" {
			if _, err := fmt.Fprintf(w, "%s: %s\n", r.Name, r.Message); err != nil {
				return err
			}
		}
	}
	return nil
}
