package extension

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/slipwayhq/slipway/internal/cli/term"
	"github.com/slipwayhq/slipway/internal/extensiontools/scaffold"
)

// initCommand returns the extension init command.
func initCommand(e term.Env) *cobra.Command {
	var o scaffold.Options
	cmd := &cobra.Command{
		Use:   "init NAME",
		Short: "Write the Go project of a new extension, which builds and passes its test",
		Long: `Write a small Go project: a handler for each hook, their tests, requests to try them with, and what it takes to
ship it: an image without root, manifests with two replicas, certificate and network policy, and a release
for clusterctl. It builds with the SDK that is part of this binary and is written beside it
(third_party/slipway-sdk); other modules come from the Go module proxy or cache.

--hook names the hooks, which "slipway extension example" lists. Those of in-place updates come together.`,
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
	cmd.Flags().StringVar(&o.Dir, "dir", "", "folder to write to; it must be empty or absent (default: NAME)")
	cmd.Flags().StringVar(&o.Module, "module", "", "path of the Go module (default: example.com/NAME)")
	cmd.Flags().StringSliceVar(&o.Hooks, "hook", nil, "hook that the extension answers; may be repeated (default: BeforeClusterCreate and GeneratePatches)")
	cmd.Flags().StringVar(&o.SDK, "sdk", "", "folder with the source of the SDK to build with (default: that of this binary)")
	return cmd
}
