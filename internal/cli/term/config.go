package term

import (
	"context"

	"github.com/spf13/pflag"

	"github.com/slipwayhq/slipway/internal/clusterctl/install"
	"github.com/slipwayhq/slipway/internal/clusterctl/repository"
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
