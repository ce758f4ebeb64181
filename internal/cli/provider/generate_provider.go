package provider

import (
	"context"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/slipwayhq/slipway/internal/cli/term"
	"github.com/slipwayhq/slipway/internal/clusterctl/provider"
	"github.com/slipwayhq/slipway/internal/clusterctl/repository"
	"github.com/slipwayhq/slipway/internal/fault"
)

// generateProviderOptions holds the flag values. The flags are clusterctl's.
type generateProviderOptions struct {
	*term.ConfigFlags
	named            map[provider.Type]*string
	namespace, write string
	describe, raw    bool
}

// GenerateProviderCommand returns the generate provider command of clusterctl, for package cli.
func GenerateProviderCommand(e term.Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "provider",
		Short: "Print the manifests of a provider as they are installed",
		Long: `Print the objects of one provider with its variables substituted, its namespace and labels set, and
its images overridden by the configuration file. --describe lists the variables and images instead;
it requires no values for the variables.`,
		Example: "  slipway generate provider --infrastructure aws:v2.9.1 --describe\n  slipway generate provider --bootstrap kubeadm --target-namespace bootstrap",
		Args:    cobra.NoArgs,
	}
	flags := cmd.Flags()
	o := generateProviderOptions{ConfigFlags: term.AddConfigFlags(flags), named: map[provider.Type]*string{}}
	for _, t := range provider.Types() {
		o.named[t] = flags.StringP(t.Flag(), shorthand(t), "", strings.ReplaceAll(t.Flag(), "-", " ")+" provider, as NAME or NAME:VERSION")
	}
	flags.StringVarP(&o.namespace, "target-namespace", "n", "", "namespace of the provider (default: the namespace in its components)")
	flags.BoolVar(&o.describe, "describe", false, "describe the provider instead of printing its objects")
	flags.BoolVar(&o.raw, "raw", false, "do not substitute variables")
	flags.StringVar(&o.write, "write-to", "", "file to write to instead of standard output")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error { return o.run(cmd.Context(), e) }
	return cmd
}

// shorthand returns the one-letter flag of a provider type, if it has one.
func shorthand(t provider.Type) string {
	switch t {
	case provider.Bootstrap, provider.ControlPlane, provider.Infrastructure:
		return t.Flag()[:1]
	}
	return ""
}

func (o generateProviderOptions) run(ctx context.Context, e term.Env) error {
	t, name, err := o.selectedProvider()
	if err != nil {
		return err
	}
	reference, err := provider.ParseReference(name)
	if err != nil {
		return err
	}
	loader, err := o.Load(ctx, e)
	if err != nil {
		return err
	}
	s, version, err := loader.Find(ctx, t, reference)
	if err != nil {
		return err
	}
	c, err := repository.LoadComponents(ctx, s, version, repository.ComponentOptions{
		TargetNamespace: o.namespace, Raw: o.raw || o.describe, Lookup: loader.Config.Variable, AlterImage: loader.Config.AlterImage,
	})
	if err != nil {
		return err
	}
	if o.describe {
		return printComponents(e.Out, c, s.ComponentsFile())
	}
	data, err := c.YAML()
	if err != nil {
		return err
	}
	return term.WriteResult(e, o.write, data)
}

// selectedProvider returns the provider from the flags, and rejects more than one.
func (o generateProviderOptions) selectedProvider() (provider.Type, string, error) {
	var found []provider.Type
	for _, t := range provider.Types() {
		if *o.named[t] != "" {
			found = append(found, t)
		}
	}
	if len(found) != 1 {
		return "", "", fault.New(fault.Invalid, "Usage", "name exactly one provider, for example with --infrastructure aws; see \"slipway generate provider --help\"")
	}
	return found[0], *o.named[found[0]], nil
}

// printComponents prints the output of --describe, in the form of clusterctl.
func printComponents(w io.Writer, c *repository.Components, file string) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, line := range [][2]string{
		{"Name", c.Provider.Name}, {"Type", string(c.Provider.Type)}, {"URL", c.Provider.URL}, {"Version", c.Version},
		{"File", file}, {"TargetNamespace", c.TargetNamespace},
	} {
		_, _ = fmt.Fprintf(t, "%s:\t%s\n", line[0], line[1])
	}
	if err := t.Flush(); err != nil {
		return err
	}
	if len(c.Variables) > 0 {
		_, _ = fmt.Fprintln(w, "Variables:")
	}
	for _, v := range c.Variables {
		_, _ = fmt.Fprintf(w, "  - %s\n", v.Name)
	}
	if len(c.Images) > 0 {
		_, _ = fmt.Fprintln(w, "Images:")
	}
	for _, image := range c.Images {
		_, _ = fmt.Fprintf(w, "  - %s\n", image)
	}
	return nil
}
