// Package source provides the flag --config of the clusterctl commands. It reads the configuration file, and prints
// results and lists of variables.
package term

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/pflag"

	"github.com/slipwayhq/slipway/internal/clusterctl/install"
	"github.com/slipwayhq/slipway/internal/clusterctl/repository"
	"github.com/slipwayhq/slipway/internal/fault"
)

// SourceFlags holds the location of the configuration file.
type SourceFlags struct {
	// Config is a path or an https URL; empty: the default locations.
	Config string
}

// AddSourceFlags adds the flag.
func AddSourceFlags(flags *pflag.FlagSet) *SourceFlags {
	f := &SourceFlags{}
	flags.StringVar(&f.Config, "config", "", "configuration file of clusterctl, a path or an https address (default: $XDG_CONFIG_HOME/cluster-api/clusterctl.yaml)")
	return f
}

// Load reads the configuration file and returns a loader for its providers. Environment variables take precedence over
// the file.
func (f *SourceFlags) Load(ctx context.Context, e Env) (install.SelectionLoader, error) {
	file, err := repository.LoadConfig(ctx, repository.ConfigEnvironment{Lookup: func(name string) (string, bool) {
		value := e.Getenv(name)
		return value, value != "" // an empty variable counts as unset, as in clusterctl
	}}, f.Config)
	if err != nil {
		return install.SelectionLoader{}, err
	}
	return install.NewSelectionLoader(file), nil
}

// Write writes a result to a file, or to standard output if the path is empty.
func Write(e Env, path string, data []byte) error {
	if len(data) > 0 && !bytes.HasSuffix(data, []byte("\n")) {
		data = append(data, '\n')
	}
	if path == "" {
		_, err := e.Out.Write(data)
		return err
	}
	if err := os.WriteFile(path, data, 0o600); err != nil {
		return fault.New(fault.Invalid, "FileNotWritten", "the result cannot be written: %v; name another file", err).From(err)
	}
	return nil
}

// List prints the variables of a template, starting with those that need a value.
func List(w io.Writer, variables []repository.Variable) error {
	var required, optional strings.Builder
	for _, v := range variables {
		if v.Default == nil {
			_, _ = fmt.Fprintf(&required, "  - %s\n", v.Name)
			continue
		}
		_, _ = fmt.Fprintf(&optional, "  - %s (default %q)\n", v.Name, *v.Default)
	}
	text := ""
	if required.Len() > 0 {
		text = "Required Variables:\n" + required.String()
	}
	if optional.Len() > 0 {
		text += "Optional Variables:\n" + optional.String()
	}
	if text == "" {
		text = "The template has no variables.\n"
	}
	_, err := io.WriteString(w, text)
	return err
}
