// Package providers provides what the commands for providers share: the flags that select providers of each type, the
// flags of commands that install providers, a client without rate limits, and the output of plans. Start with [Flags],
// then [change].
package provider

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/pflag"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slipwayhq/slipway/internal/cli/management"
	"github.com/slipwayhq/slipway/internal/clusterctl/install"
	"github.com/slipwayhq/slipway/internal/clusterctl/provider"
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

// Client returns a client without client-side limits: the API server limits requests itself, and an installation
// creates hundreds of objects.
func Client(c *management.Connection) (client.WithWatch, error) {
	scheme, err := management.Scheme()
	if err != nil {
		return nil, err
	}
	for _, add := range []func() error{
		func() error { return appsv1.AddToScheme(scheme) },
		func() error { return admissionregistrationv1.AddToScheme(scheme) },
		func() error { return apiextensionsv1.AddToScheme(scheme) },
	} {
		if err := add(); err != nil {
			return nil, err
		}
	}
	config := rest.CopyConfig(c.Config)
	config.QPS, config.Burst = -1, 0
	return client.NewWithWatch(config, client.Options{Scheme: scheme})
}

// kinds returns the kinds of a management cluster.
func kinds(c *management.Connection) ([]schema.GroupVersionKind, error) {
	d, err := discovery.NewDiscoveryClientForConfig(c.Config)
	if err != nil {
		return nil, err
	}
	return install.Kinds(d)
}

// Shown is the structured output of a plan.
type Shown struct {
	Steps []install.StepOutput `json:"steps"`
	Notes []string             `json:"notes,omitempty"`
	// Done is true if the plan was executed.
	Done bool `json:"done"`
}

// printPlan prints a plan as text.
func printPlan(w io.Writer, p install.Plan) error {
	for _, note := range p.Notes {
		if _, err := fmt.Fprintln(w, note); err != nil {
			return err
		}
	}
	if len(p.Steps) == 0 {
		_, err := fmt.Fprintln(w, "There is nothing to do.")
		return err
	}
	_, err := fmt.Fprintln(w, strings.Join(p.Lines(), "\n"))
	return err
}
