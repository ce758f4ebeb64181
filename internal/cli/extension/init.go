package extension

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/slipwayhq/slipway/internal/cli/term"
	"github.com/slipwayhq/slipway/internal/extensiontools/scaffold"
)

// initCommand returns the extension init command, for [Command].
func initCommand(e term.Env) *cobra.Command {
	var o scaffold.Options
	cmd := &cobra.Command{
		Use:   "init NAME",
		Short: "Create the Go project of a new extension",
		Long: `Create a small Go project that compiles and passes its tests. It contains a handler for each hook
with tests and example requests, and the files of a release: a rootless image, manifests with two
replicas, a certificate and a NetworkPolicy, and a release for clusterctl. The project uses the SDK
of this binary, which is written to third_party/slipway-sdk; other modules come from the Go module
proxy or cache.

--hook selects the hooks; "slipway extension example" lists them. The hooks of in-place updates are
added together.`,
		Example: `  slipway extension init my-extension
  slipway extension init backup --hook BeforeClusterDelete,BeforeClusterUpgrade
  cd my-extension
  go test ./...`,
		Args: term.ExactlyOneArgument("NAME"),
		RunE: func(_ *cobra.Command, args []string) error {
			o.Name = args[0]
			if o.Dir == "" {
				o.Dir = o.Name
			}
			if o.Module == "" {
				o.Module = "example.com/" + o.Name
			}
			files, err := scaffold.Write(o)
			if err != nil {
				return err
			}
			_, err = fmt.Fprintf(e.Out, `Extension %q is in %s:
  %s
Next:
  cd %s
  go test ./...
  slipway extension run -- go run .
`, o.Name, o.Dir, strings.Join(files, "\n  "), o.Dir)
			return err
		},
	}
	cmd.Flags().StringVar(&o.Dir, "dir", "", "directory to write to; it must be empty or not exist (default: NAME)")
	cmd.Flags().StringVar(&o.Module, "module", "", "Go module path (default: example.com/NAME)")
	cmd.Flags().StringSliceVar(&o.Hooks, "hook", nil, "hook that the extension implements; may be repeated (default: BeforeClusterCreate and GeneratePatches)")
	cmd.Flags().StringVar(&o.SDK, "sdk", "", "directory with the source of the SDK (default: the SDK of this binary)")
	return cmd
}
