package term

import (
	"context"

	"github.com/spf13/pflag"

	"github.com/slipwayhq/slipway/internal/clusterctl/install"
	"github.com/slipwayhq/slipway/internal/clusterctl/repository"
)

// ConfigFlags is the --config flag of the provider commands and "generate cluster": the location of clusterctl's
// configuration file.
type ConfigFlags struct {
	// Config is a path or an https URL; empty: the default locations.
	Config string
}

// AddConfigFlags adds the flag --config.
func AddConfigFlags(flags *pflag.FlagSet) *ConfigFlags {
	f := &ConfigFlags{}
	flags.StringVar(&f.Config, "config", "", "path or https URL of the clusterctl configuration file (default: $XDG_CONFIG_HOME/cluster-api/clusterctl.yaml)")
	return f
}

// Load reads the configuration file and returns a loader for its providers. Environment variables take precedence over
// the file.
func (f *ConfigFlags) Load(ctx context.Context, e Env) (install.ProviderLoader, error) {
	file, err := repository.LoadConfig(ctx, repository.ConfigEnvironment{Lookup: func(name string) (string, bool) {
		value := e.Getenv(name)
		return value, value != "" // an empty variable counts as unset, as in clusterctl
	}}, f.Config)
	if err != nil {
		return install.ProviderLoader{}, err
	}
	return install.NewProviderLoader(file), nil
}
