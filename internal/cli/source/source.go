// Package source is the flag --config of the verbs of clusterctl, and what it leads to.
//
// Does: reads the configuration file; writes results, and lists of variables.
//
// Never: writes to a cluster.
//
// Read first: [Flags].
package source

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/pflag"

	"github.com/slipwayhq/slipway/internal/cli/env"
	"github.com/slipwayhq/slipway/internal/clusterctl/configfile"
	"github.com/slipwayhq/slipway/internal/clusterctl/selection"
	"github.com/slipwayhq/slipway/internal/clusterctl/substitution"
	"github.com/slipwayhq/slipway/internal/fault"
)

// Flags say where the configuration file is.
type Flags struct {
	// Config is a path or an address that begins with https; empty: the usual places.
	Config string
}

// Add adds the flag.
func Add(flags *pflag.FlagSet) *Flags {
	f := &Flags{}
	flags.StringVar(&f.Config, "config", "", "configuration file of clusterctl, a path or an https address (default: $XDG_CONFIG_HOME/cluster-api/clusterctl.yaml)")
	return f
}

// Load reads the configuration file, with the environment in front of it, and returns what reads the providers that it names.
func (f *Flags) Load(ctx context.Context, e env.Env) (selection.Loader, error) {
	file, err := configfile.Load(ctx, configfile.Environment{Lookup: func(name string) (string, bool) {
		value := e.Getenv(name)
		return value, value != "" // a variable without content counts as none, as for clusterctl
	}}, f.Config)
	if err != nil {
		return selection.Loader{}, err
	}
	return selection.New(file), nil
}

// Write writes a result to the file that a flag names; without one, to the standard output.
func Write(e env.Env, path string, data []byte) error {
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

// List prints which variables a template has, those that need a value first.
func List(w io.Writer, variables []substitution.Variable) error {
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
