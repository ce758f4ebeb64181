package cluster

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slipwayhq/slipway/internal/buildinfo"
	"github.com/slipwayhq/slipway/internal/cli/hidden"
	"github.com/slipwayhq/slipway/internal/cli/management"
	"github.com/slipwayhq/slipway/internal/cli/term"
	"github.com/slipwayhq/slipway/internal/clusterctl/install"
	"github.com/slipwayhq/slipway/internal/clusterctl/provider"
	"github.com/slipwayhq/slipway/internal/clusterctl/repository"
	"github.com/slipwayhq/slipway/internal/clusterctl/template"
	"github.com/slipwayhq/slipway/internal/operate/create"
)

// generateRun is one run of "generate cluster". [generateOptions.run] creates it and calls its methods.
type generateRun struct {
	*generateOptions
	e      term.Env
	loader install.ProviderLoader
	// cluster is nil if there is no management cluster; connectError is the reason.
	cluster      *management.Connection
	connectError error
	// builtin is true if the template is one of provider local, which is built into this binary.
	builtin bool
	// network is the first half (two octets) of the cluster's IPv4 range, for built-in templates; empty: the default of
	// the template.
	network string
}

// run prints the manifest, or with --list-variables the variables. The command calls it after check.
func (o *generateOptions) run(ctx context.Context, e term.Env) error {
	loader, err := o.source.Load(ctx, e)
	if err != nil {
		return err
	}
	g := &generateRun{generateOptions: o, e: e, loader: loader}
	g.cluster, g.connectError = o.management.Connect(e)
	if o.namespace == "" {
		o.namespace = "default"
		if g.cluster != nil {
			o.namespace = g.cluster.Namespace
		}
	}
	if o.from != "" || o.configMap != "" {
		text, err := g.text(ctx)
		if err != nil {
			return err
		}
		if o.list {
			return g.variables(text)
		}
		g.warn(text)
		t, err := template.New(text, g.template())
		return g.print(t, err)
	}
	release, err := g.release(ctx)
	if err != nil {
		return err
	}
	text, err := release.Text(ctx)
	if err != nil {
		return err
	}
	var existing client.Reader
	if g.cluster != nil {
		existing = g.cluster.Client
		g.chooseNetwork(ctx)
	}
	if o.list {
		return g.variables(text)
	}
	g.warn(text)
	t, err := release.Template(ctx, existing, g.template())
	return g.print(t, err)
}

// text returns a template that is not part of a release.
func (g *generateRun) text(ctx context.Context) ([]byte, error) {
	if g.from != "" {
		return template.Source{In: g.e.In, Variable: g.loader.Config.Variable}.Read(ctx, g.from)
	}
	if g.connectError != nil {
		return nil, g.connectError
	}
	key := client.ObjectKey{Namespace: g.mapNamespace, Name: g.configMap}
	if key.Namespace == "" {
		key.Namespace = g.cluster.Namespace
	}
	text, err := template.FromConfigMap(ctx, g.cluster.Client, key, cmp.Or(g.mapKey, template.DefaultKey))
	return text, g.cluster.Explain(err)
}

// release returns the provider version whose template is used. It sets builtin, which chooseNetwork, lookup and warn
// read.
func (g *generateRun) release(ctx context.Context) (template.Release, error) {
	named, err := g.providerReference(ctx)
	if err != nil {
		return template.Release{}, err
	}
	if named == template.BuiltinName && g.isBuiltin() {
		g.builtin = true
		s, err := template.Builtin()
		return template.Release{Source: s, Version: template.BuiltinVersion(), Flavor: g.flavor}, err
	}
	reference, err := provider.ParseReference(named)
	if err != nil {
		return template.Release{}, err
	}
	s, version, err := g.loader.Find(ctx, provider.Infrastructure, reference)
	return template.Release{Source: s, Version: version, Flavor: g.flavor}, err
}

// isBuiltin reports whether the built-in provider is used, because the configuration file does not configure another of
// its name.
func (g *generateRun) isBuiltin() bool {
	_, err := g.loader.Config.Provider(provider.Infrastructure, template.BuiltinName)
	return err != nil
}

// providerReference returns the provider from the flag, with the installed version if the flag contains none. Without a
// flag it returns the installed provider.
func (g *generateRun) providerReference(ctx context.Context) (string, error) {
	reference := provider.Reference{}
	if g.infrastructure != "" {
		var err error
		if reference, err = provider.ParseReference(g.infrastructure); err != nil || reference.Version != "" || reference.Name == template.BuiltinName {
			return g.infrastructure, err
		}
	}
	if g.connectError != nil {
		if reference.Name != "" {
			return reference.Name, nil // the latest version
		}
		return "", g.connectError
	}
	installed, err := template.Installed(ctx, g.cluster.Client, reference.Name)
	if err != nil {
		if reference.Name != "" {
			return reference.Name, nil
		}
		return "", g.cluster.Explain(err)
	}
	return installed.String(), nil
}

// template returns the options for the template.
func (g *generateRun) template() template.Options {
	out := template.Options{Name: g.name, Namespace: g.namespace, KubernetesVersion: g.version, Lookup: g.lookup()}
	if g.controlPlaneGiven {
		out.ControlPlaneMachines = &g.controlPlane
	}
	if g.workersGiven {
		out.WorkerMachines = &g.workers
	}
	return out
}

// chooseNetwork selects a network that no other cluster of the management cluster uses, because two clusters from the
// same template would have the same network. If the networks in use cannot be read, the default of the template
// applies, as without a management cluster. run calls it before the variables are replaced, because lookup returns the
// network.
func (g *generateRun) chooseNetwork(ctx context.Context) {
	if !g.builtin {
		return
	}
	if host, err := hidden.HostNetworks(ctx, g.cluster); err == nil {
		g.network, _ = create.FirstOctets(ctx, g.cluster.Client, client.ObjectKey{Namespace: g.namespace, Name: g.name}, host)
	}
}

// lookup returns variable values. For templates of this build it adds the Kubernetes version of this build and a
// network.
func (g *generateRun) lookup() repository.Lookup {
	return func(name string) (string, bool) {
		value, ok := g.loader.Config.Variable(name)
		switch {
		case ok || !g.builtin:
		case name == "KUBERNETES_VERSION":
			return buildinfo.Get().Kubernetes, true
		case name == template.BuiltinNetwork && g.network != "":
			return g.network, true
		}
		return value, ok
	}
}

// warn reports flags for machine counts that the template does not use.
func (g *generateRun) warn(text []byte) {
	all, err := repository.Envsubst{}.Variables(text)
	if err != nil {
		return // the error is reported when the variables are replaced
	}
	for _, flag := range []struct {
		given                 bool
		name, variable, other string
	}{
		{g.controlPlaneGiven, "control-plane-machine-count", "CONTROL_PLANE_MACHINE_COUNT", "; its control plane has no Machines, that of flavor kubeadm has"},
		{g.workersGiven, "worker-machine-count", "WORKER_MACHINE_COUNT", ""},
	} {
		if !flag.given || slices.ContainsFunc(all, func(v repository.Variable) bool { return v.Name == flag.variable }) {
			continue
		}
		if !g.builtin {
			flag.other = ""
		}
		_, _ = fmt.Fprintf(g.e.Err, "Warning: --%s has no effect: the template does not read %s%s\n", flag.name, flag.variable, flag.other)
	}
}

// variables implements --list-variables: it prints the variables of a template, with the chosen network as a default.
func (g *generateRun) variables(text []byte) error {
	variables, err := repository.Envsubst{}.Variables(text)
	if err != nil {
		return err
	}
	for i := range variables {
		if variables[i].Name == template.BuiltinNetwork && g.network != "" {
			variables[i].Default = &g.network
		}
	}
	return term.PrintVariables(g.e.Out, variables)
}

// print writes the manifest of a template, or returns err. run passes the result of each kind of template to it.
func (g *generateRun) print(t *template.Template, err error) error {
	if err != nil && g.cluster != nil {
		err = g.cluster.Explain(err)
	}
	if err != nil {
		return err
	}
	data, err := t.YAML()
	if err != nil {
		return err
	}
	return term.WriteResult(g.e, g.write, data)
}
