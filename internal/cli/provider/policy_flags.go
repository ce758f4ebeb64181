package provider

import (
	"io"
	"os"
	"strings"

	"github.com/spf13/pflag"

	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/policy"
	"github.com/slipwayhq/slipway/internal/providerset"
)

// PolicyFlags holds --config and --print-config of "slipway up" and "slipway manager". The file is the operator's
// configuration (package policy), not the configuration file of clusterctl.
type PolicyFlags struct {
	File  string
	Print bool
}

// Bind adds the flags.
func (f *PolicyFlags) Bind(flags *pflag.FlagSet) {
	flags.StringVar(&f.File, "config", "", "configuration `FILE` with providers and limits, read once at startup (default: the output of --print-config)")
	flags.BoolVar(&f.Print, "print-config", false, "print the configuration with its defaults and exit")
}

// Read returns the effective configuration. An error lists all problems of the file. Both commands then disable the
// providers that their own flags exclude.
func (f *PolicyFlags) Read() (policy.Configuration, error) {
	if f.File == "" {
		return policy.Default(), nil
	}
	text, err := os.ReadFile(f.File)
	if err != nil {
		return policy.Configuration{}, fault.New(fault.Invalid, "InvalidConfiguration",
			"the configuration file of --config cannot be read: %v", err).From(err)
	}
	return policy.Parse(text)
}

// PrintTo prints the effective configuration.
func (f *PolicyFlags) PrintTo(w io.Writer) error {
	c, err := f.Read()
	if err != nil {
		return err
	}
	text, err := c.Print()
	if err != nil {
		return err
	}
	_, err = w.Write(text)
	return err
}

// ParseProviders parses the provider names in a flag value: --without of "slipway up", --providers of "slipway
// manager".
func ParseProviders(flag string, texts []string) ([]policy.Provider, error) {
	var out []policy.Provider
	for _, text := range texts {
		out = append(out, policy.Provider(strings.TrimSpace(text)))
	}
	if unknown := providerset.Unknown(out); len(unknown) > 0 {
		return nil, fault.New(fault.Invalid, "UnknownProvider", "%s: there is no provider %s; there are %s",
			flag, providerset.List(unknown), providerset.List(providerset.Names()))
	}
	return out, nil
}
