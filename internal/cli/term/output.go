package term

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/pflag"
	"sigs.k8s.io/yaml"

	"github.com/slipwayhq/slipway/internal/clusterctl/repository"
	"github.com/slipwayhq/slipway/internal/fault"
)

// Format is the value of an -o flag. Empty means text. Commands create it with [AddOutputFlag].
type Format struct {
	value string
	more  []string
}

// AddOutputFlag adds -o/--output to flags; more lists formats other than json and yaml.
func AddOutputFlag(flags *pflag.FlagSet, more ...string) *Format {
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

// Print writes v as JSON or YAML, or calls text. Commands print their results with it.
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

// WriteResult writes a result to a file, or to standard output if the path is empty. "generate cluster", "generate
// provider", "generate yaml" and "convert" call it.
func WriteResult(e Env, path string, data []byte) error {
	if len(data) > 0 && !bytes.HasSuffix(data, []byte("\n")) {
		data = append(data, '\n')
	}
	if path == "" {
		_, err := e.Out.Write(data)
		return err
	}
	if err := os.WriteFile(path, data, 0o600); err != nil {
		return fault.New(fault.Invalid, "FileNotWritten", "the result cannot be written: %v; use another file", err).From(err)
	}
	return nil
}

// PrintVariables prints the variables of a template, starting with those that need a value, for --list-variables.
// "generate cluster" and "generate yaml" call it.
func PrintVariables(w io.Writer, variables []repository.Variable) error {
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
