// Package output prints results as text, JSON or YAML. It provides the -o flag; each command renders its text.
package term

import (
	"encoding/json"
	"io"
	"strings"

	"github.com/spf13/pflag"
	"sigs.k8s.io/yaml"

	"github.com/slipwayhq/slipway/internal/fault"
)

// Format is the value of an -o flag. Empty means text.
type Format struct {
	value string
	more  []string
}

// Flag adds -o/--output to flags; more lists formats other than json and yaml.
func Flag(flags *pflag.FlagSet, more ...string) *Format {
	f := &Format{more: more}
	flags.VarP(f, "output", "o", "output format: "+strings.Join(f.names(), ", "))
	return f
}

// String implements pflag.Value.
func (f *Format) String() string { return f.value }

// Type implements pflag.Value.
func (f *Format) Type() string { return "FORMAT" }

// Set implements pflag.Value.
func (f *Format) Set(s string) error {
	for _, n := range f.names() {
		if s == n {
			f.value = s
			return nil
		}
	}
	return fault.New(fault.Invalid, "OutputFormat", "unknown output format %q; use one of: %s", s, strings.Join(f.names(), ", "))
}

func (f *Format) names() []string { return append([]string{"json", "yaml"}, f.more...) }

// Print writes v as JSON or YAML, or calls text.
func (f *Format) Print(w io.Writer, v any, text func(io.Writer) error) error {
	switch f.value {
	case "json":
		e := json.NewEncoder(w)
		e.SetIndent("", "  ")
		return e.Encode(v)
	case "yaml":
		data, err := yaml.Marshal(v)
		if err != nil {
			return err
		}
		_, err = w.Write(data)
		return err
	}
	return text(w)
}
