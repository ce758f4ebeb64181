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

// Flags select providers.
type Flags struct{ named map[provider.Type]*[]string }

// add adds a flag for each type. The argument use describes the action in usage texts.
func add(flags *pflag.FlagSet, use string) *Flags {
	f := &Flags{named: map[provider.Type]*[]string{}}
	short := map[provider.Type]string{provider.Bootstrap: "b", provider.ControlPlane: "c", provider.Infrastructure: "i"}
	for _, t := range provider.Types() {
		what := strings.ReplaceAll(t.Flag(), "-", " ") + " providers to " + use + ", as NAME or NAME:VERSION"
		if t == provider.Core {
			one := &[]string{}
			flags.Var((*single)(one), t.Flag(), "core provider to "+use+", as cluster-api or cluster-api:VERSION")
			f.named[t] = one
			continue
		}
		f.named[t] = flags.StringSliceP(t.Flag(), short[t], nil, what)
	}
	return f
}

// single is a flag with one value.
type single []string

func (s *single) String() string { return strings.Join(*s, ",") }
func (s *single) Type() string   { return "string" }
func (s *single) Set(value string) error {
	*s = single{value}
	return nil
}

// Named returns the flag values by type.
func (f *Flags) Named() map[provider.Type][]string {
	out := map[provider.Type][]string{}
	for t, names := range f.named {
		if len(*names) > 0 {
			out[t] = *names
		}
	}
	return out
}

// change holds the flags of a command that installs provider versions.
type change struct {
	Named      *Flags
	Config     *term.SourceFlags
	Format     *term.Format
	Wait       bool
	DryRun     bool
	connection *management.Flags
	timeout    int
}

// addChange adds the flags. The argument use describes the action in usage texts; --config is added to config.
func addChange(flags, config *pflag.FlagSet, use string) *change {
	f := &change{connection: management.AddClusterScoped(flags), Named: add(flags, use), Config: term.AddSourceFlags(config)}
	flags.BoolVar(&f.Wait, "wait-providers", false, "wait until the providers are available")
	flags.IntVar(&f.timeout, "wait-provider-timeout", 300, "how many seconds to wait for each provider, and for all of them together")
	flags.BoolVar(&f.DryRun, "dry-run", false, "print the steps and do nothing")
	f.Format = term.Flag(flags)
	return f
}

// Run returns the RunE function of the command, which calls run with a connection to the management cluster.
func (f *change) Run(e term.Env, run func(ctx context.Context, e term.Env, c *management.Connection) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, _ []string) error {
		if f.timeout < 0 {
			return fault.New(fault.Invalid, "Usage", "--wait-provider-timeout cannot be negative")
		}
		c, err := f.connection.Connect(e)
		if err != nil {
			return err
		}
		if !f.DryRun {
			c.WarnOverlooked(e)
		}
		return c.Explain(run(cmd.Context(), e, c))
	}
}

// Runner returns the runner for the plan.
func (f *change) Runner(e term.Env, c client.Client) install.Runner {
	return install.Runner{
		Client: c, Timeout: time.Duration(f.timeout) * time.Second, Progress: term.Reporter(e),
		Certify: func(ctx context.Context) error { return certificates.Reconcile(ctx, c, e.Now()) },
	}
}
