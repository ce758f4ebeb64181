package extension

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/slipwayhq/slipway/internal/cli/term"
	"github.com/slipwayhq/slipway/internal/extensiontools/scaffold"
)

// updateCommand returns the extension update command, for [Command].
func updateCommand(e term.Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "update [DIR]",
		Short: "Update the SDK in the project of an extension",
		Long: `Replace third_party/slipway-sdk in the project of an extension, in DIR or the current directory,
with the SDK of this binary, and upgrade the requirements in go.mod to the versions that the SDK was
tested with. Newer requirements are not changed. Changes in third_party/slipway-sdk are lost. All
other files stay unchanged.`,
		Example: "  slipway extension update\n  go test ./...",
		Args:    cobra.MaximumNArgs(1),
	}
	format := term.AddOutputFlag(cmd.Flags())
	cmd.RunE = func(_ *cobra.Command, args []string) error {
		dir := "."
		if len(args) > 0 {
			dir = args[0]
		}
		u, err := scaffold.Update(dir)
		if err != nil {
			return err
		}
		result := updateOutput{Added: u.Added, Changed: u.Changed, Removed: u.Removed, Modules: u.Modules}
		return format.Print(e.Out, result, func(w io.Writer) error { return updateText(w, u) })
	}
	return cmd
}

// updateOutput is the structured output of the changes. Scripts depend on the field names.
type updateOutput struct {
	// Added, Changed and Removed are numbers of SDK files.
	Added   int `json:"added"`
	Changed int `json:"changed"`
	Removed int `json:"removed"`
	// Modules are the modules with a newer required version.
	Modules []string `json:"modules,omitempty"`
}

func updateText(w io.Writer, u scaffold.UpdateResult) error {
	if u.IsEmpty() {
		_, err := fmt.Fprintln(w, "The project has the SDK of this binary already.")
		return err
	}
	_, err := fmt.Fprintf(w, "The SDK is updated to the version of this binary: %d files added, %d changed, %d removed.\n", u.Added, u.Changed, u.Removed)
	for _, m := range u.Modules {
		if err == nil {
			_, err = fmt.Fprintln(w, "  go.mod requires "+m)
		}
	}
	if err == nil {
		_, err = fmt.Fprintln(w, "Next:\n  go test ./...")
	}
	return err
}
