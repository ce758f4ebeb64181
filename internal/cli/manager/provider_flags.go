package manager

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/pflag"
	"sigs.k8s.io/yaml"

	"github.com/slipwayhq/slipway/config/rbac"
	"github.com/slipwayhq/slipway/internal/cli/provider"
	"github.com/slipwayhq/slipway/internal/cli/term"
	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/policy"
	"github.com/slipwayhq/slipway/internal/providerset"
)

// providerFlags holds the flags of the manager command that select providers. options.bind adds them, and
// options.complete reads them (manager.go).
type providerFlags struct {
	only  []string
	print bool
}

func (p *providerFlags) bind(f *pflag.FlagSet) {
	f.StringSliceVar(&p.only, "providers", nil, "run only these providers: "+providerset.List(providerset.Names())+" (default: all that the configuration file does not disable)")
	f.BoolVar(&p.print, "print-roles", false, "print the namespace, roles and bindings that the manager of these providers needs, and exit")
}

// read returns the operator's configuration, in which all other providers are disabled.
func (p *providerFlags) read(file *provider.PolicyFlags) (policy.Configuration, error) {
	c, err := file.Read()
	if err != nil || len(p.only) == 0 {
		return c, err
	}
	only, err := provider.ParseProviders("--providers", p.only)
	if err != nil {
		return c, err
	}
	for _, name := range only {
		if !c.Runs(name) {
			return c, fault.New(fault.Invalid, "ProviderDisabled",
				"--providers: the configuration file disables %s: take it out of one of the two", name)
		}
	}
	c.Disable(providerset.Others(only...)...)
	if len(c.Sets()) == 0 {
		return c, fault.New(fault.Invalid, "NoProvider", "--providers=%s runs nothing: add one of the providers that can be simulated", providerset.List(only))
	}
	return c, nil
}

// ineffective returns the given flags that belong to a provider that is not running, with the provider. run logs them
// at the start.
func ineffective(given []string, c policy.Configuration) map[string]providerset.Name {
	out := map[string]providerset.Name{}
	for _, set := range providerset.All() {
		for _, flag := range given {
			_, concurrency := set.Controllers[strings.TrimSuffix(flag, "-concurrency")]
			if !c.Runs(set.Name) && (concurrency || slices.Contains(set.Flags, flag)) {
				out[flag] = set.Name
			}
		}
	}
	return out
}

// printRoles implements --print-roles: it prints the objects that an administrator applies before the manager starts.
// planes is true if hosted control planes run as Pods.
func (p *providerFlags) printRoles(e term.Env, file *provider.PolicyFlags, planes bool) error {
	c, err := p.read(file)
	if err != nil {
		return err
	}
	objects, err := rbac.Objects(rbac.Rights{Sets: c.Sets(), HostedInPods: planes})
	if err != nil {
		return err
	}
	for _, o := range objects {
		text, err := yaml.Marshal(o.Object)
		if err != nil {
			return fmt.Errorf("printing %s %s: %w", o.GetKind(), o.GetName(), err)
		}
		if _, err := fmt.Fprintf(e.Out, "---\n%s", text); err != nil {
			return err
		}
	}
	return nil
}
