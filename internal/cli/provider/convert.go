package provider

import (
	"fmt"

	"github.com/spf13/cobra"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/slipwayhq/slipway/internal/cli/term"
	"github.com/slipwayhq/slipway/internal/clusterctl/template"
)

// ConvertCommand returns the convert command of clusterctl, for package cli.
func ConvertCommand(e term.Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "convert [FILE]",
		Short: "Convert a manifest to the newest Cluster API version",
		Long: `Convert the objects of the API group cluster.x-k8s.io in a file, or in standard input, to another
version of the API. Other objects are not changed. Patches in a ClusterClass are not converted:
check their paths. Comments in converted objects are lost.`,
		Example: "  slipway convert cluster.yaml > cluster-v1beta2.yaml\n  slipway convert cluster.yaml --output cluster.yaml",
	}
	to := cmd.Flags().String("to-version", clusterv1.GroupVersion.Version, "API version to convert to; only "+clusterv1.GroupVersion.Version+" is supported")
	out := cmd.Flags().StringP("output", "o", "", "file to write to instead of standard output")
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return nil
		}
		return term.ExactlyOneArgument("FILE")(cmd, args)
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		from := "-"
		if len(args) == 1 {
			from = args[0]
		}
		data, err := template.Source{In: e.In, Variable: func(string) (string, bool) { return "", false }}.Read(cmd.Context(), from)
		if err != nil {
			return err
		}
		r, err := template.ConvertManifest(data, *to)
		if err != nil {
			return err
		}
		if err := term.WriteResult(e, *out, r.YAML); err != nil {
			return err
		}
		for _, note := range r.Notes {
			_, _ = fmt.Fprintln(e.Err, note)
		}
		_, err = fmt.Fprintf(e.Err, "%d objects converted to %s, %d left as they are.\n", r.Converted, *to, r.Unchanged)
		return err
	}
	return cmd
}
