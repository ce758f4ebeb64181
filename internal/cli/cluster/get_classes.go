package cluster

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/slipwayhq/slipway/internal/cli/management"
	"github.com/slipwayhq/slipway/internal/cli/term"
	"github.com/slipwayhq/slipway/internal/clusterctl/template"
)

// GetClassesCommand returns the get classes command, for package cli.
func GetClassesCommand(e term.Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "classes",
		Short: "List ClusterClasses",
		Long: `List the ClusterClasses in a namespace, or in all namespaces if -n is not set. The classes that
Slipway includes are listed without a namespace until "slipway create cluster" has used them.`,
		Example: "  slipway get classes\n  slipway create cluster demo --class local",
		Args:    cobra.NoArgs,
	}
	connection := management.AddFlags(cmd.Flags())
	cmd.Flags().Lookup("namespace").Usage = "namespace of the ClusterClasses (default: all namespaces)"
	format := term.AddOutputFlag(cmd.Flags())
	cmd.RunE = connection.RunE(e, func(ctx context.Context, c *management.Connection, _ []string) error {
		rows, err := template.ListClasses(ctx, c.Client, connection.Namespace)
		if err != nil {
			return err
		}
		return format.Print(e.Out, rows, func(w io.Writer) error { return getClassesText(w, rows) })
	})
	return cmd
}

func getClassesText(w io.Writer, rows []template.ClassSummary) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(t, "NAMESPACE\tNAME\tCLUSTERS\tWORKERS\tVARIABLES")
	for _, r := range rows {
		namespace := r.Namespace
		if namespace == "" {
			namespace = "(none yet)"
		}
		_, _ = fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\n", namespace, r.Name, strconv.Itoa(len(r.Clusters)), joinOrDash(r.Workers), joinOrDash(r.Variables))
	}
	if err := t.Flush(); err != nil {
		return err
	}
	for _, r := range rows {
		if r.Problem != "" {
			_, _ = fmt.Fprintf(w, "\nClusters of ClusterClass %s/%s wait: %s\n", r.Namespace, r.Name, r.Problem)
		}
	}
	return nil
}

func joinOrDash(names []string) string {
	if len(names) == 0 {
		return "-"
	}
	return strings.Join(names, ", ")
}
