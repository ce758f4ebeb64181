package provider

import (
	"context"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slipwayhq/slipway/internal/cli/management"
	"github.com/slipwayhq/slipway/internal/cli/term"
	"github.com/slipwayhq/slipway/internal/clusterctl/certificates"
	"github.com/slipwayhq/slipway/internal/clusterctl/install"
	"github.com/slipwayhq/slipway/internal/clusterctl/provider"
	"github.com/slipwayhq/slipway/internal/fault"
)

// providerFlags select providers: one flag for each type, with the name that it has in clusterctl. The commands init,
// "init list-images" and delete have them, and "upgrade apply".
type providerFlags struct{ named map[provider.Type]*[]string }

// addProviderFlags adds a flag for each type. The argument use describes the action in usage texts.
func addProviderFlags(flags *pflag.FlagSet, use string) *providerFlags {
	f := &providerFlags{named: map[provider.Type]*[]string{}}
	short := map[provider.Type]string{provider.Bootstrap: "b", provider.ControlPlane: "c", provider.Infrastructure: "i"}
	for _, t := range provider.Types() {
		what := strings.ReplaceAll(t.Flag(), "-", " ") + " providers to " + use + ", as NAME or NAME:VERSION"
		if t == provider.Core {
			one := &[]string{}
			flags.Var((*singleValue)(one), t.Flag(), "core provider to "+use+", as cluster-api or cluster-api:VERSION")
			f.named[t] = one
			continue
		}
		f.named[t] = flags.StringSliceP(t.Flag(), short[t], nil, what)
	}
	return f
}

// singleValue is a flag with one value.
type singleValue []string

func (s *singleValue) String() string { return strings.Join(*s, ",") }
func (s *singleValue) Type() string   { return "string" }
func (s *singleValue) Set(value string) error {
	*s = singleValue{value}
	return nil
}

// Named returns the flag values by type.
func (f *providerFlags) Named() map[provider.Type][]string {
	out := map[provider.Type][]string{}
	for t, names := range f.named {
		if len(*names) > 0 {
			out[t] = *names
		}
	}
	return out
}

// installFlags holds the flags of init and "upgrade apply", the commands that install provider versions.
type installFlags struct {
	Named      *providerFlags
	Config     *term.ConfigFlags
	Format     *term.Format
	Wait       bool
	DryRun     bool
	connection *management.Flags
	timeout    int
}

// addInstallFlags adds the flags. The argument use describes the action in usage texts; --config is added to config.
func addInstallFlags(flags, config *pflag.FlagSet, use string) *installFlags {
	f := &installFlags{connection: management.AddClusterScopedFlags(flags), Named: addProviderFlags(flags, use), Config: term.AddConfigFlags(config)}
	flags.BoolVar(&f.Wait, "wait-providers", false, "wait until the providers are available")
	flags.IntVar(&f.timeout, "wait-provider-timeout", 300, "seconds to wait for each provider, and for all providers in total")
	flags.BoolVar(&f.DryRun, "dry-run", false, "print the steps and change nothing")
	f.Format = term.AddOutputFlag(flags)
	return f
}

// Run returns the RunE function of the command, which calls run with a connection to the management cluster.
// InitCommand and UpgradeApplyCommand call it.
func (f *installFlags) Run(e term.Env, run func(ctx context.Context, e term.Env, c *management.Connection) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, _ []string) error {
		if f.timeout < 0 {
			return fault.New(fault.Invalid, "Usage", "--wait-provider-timeout cannot be negative")
		}
		c, err := f.connection.Connect(e)
		if err != nil {
			return err
		}
		if !f.DryRun {
			c.WarnIgnoredKubeconfig(e)
		}
		return c.Explain(run(cmd.Context(), e, c))
	}
}

// Runner returns the runner that executes the plan of the command. init and "upgrade apply" call it when there is a
// plan.
func (f *installFlags) Runner(e term.Env, c client.Client) install.Runner {
	return install.Runner{
		Client: c, Timeout: time.Duration(f.timeout) * time.Second, Progress: term.Reporter(e),
		Certify: func(ctx context.Context) error { return certificates.Reconcile(ctx, c, e.Now()) },
	}
}
