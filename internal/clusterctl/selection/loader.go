package selection

import (
	"cmp"
	"context"

	"github.com/slipwayhq/slipway/internal/clusterctl/component"
	"github.com/slipwayhq/slipway/internal/clusterctl/configfile"
	"github.com/slipwayhq/slipway/internal/clusterctl/installation"
	"github.com/slipwayhq/slipway/internal/clusterctl/inventory"
	"github.com/slipwayhq/slipway/internal/clusterctl/provider"
	"github.com/slipwayhq/slipway/internal/clusterctl/repository"
	"github.com/slipwayhq/slipway/internal/fault"
)

// Loader reads providers from their repositories.
type Loader struct {
	Config  *configfile.File
	Options repository.Options
}

// New returns the loader of a configuration file, with its variables and overrides.
func New(config *configfile.File) Loader {
	return Loader{Config: config, Options: repository.Options{Variable: config.Variable, Overrides: config.OverridesFolder()}}
}

// Source is the repository of a provider.
func (l Loader) Source(t provider.Type, name string) (*repository.Source, error) {
	p, err := l.Config.Provider(t, name)
	if err != nil {
		return nil, err
	}
	return repository.Open(p, l.Options)
}

// Find is the repository of a provider and the version that is meant: without one, the latest with the contract of this build.
func (l Loader) Find(ctx context.Context, t provider.Type, r provider.Reference) (*repository.Source, string, error) {
	source, err := l.Source(t, r.Name)
	if err != nil {
		return nil, "", err
	}
	version, err := source.Version(ctx, r.Version, repository.Contract)
	return source, version, err
}

// Item reads a provider: the named version, or the latest one with the contract of this build.
func (l Loader) Item(ctx context.Context, c installation.Choice, namespace string) (installation.Item, error) {
	return l.item(ctx, c, component.Options{TargetNamespace: cmp.Or(c.Reference.Namespace, namespace)})
}

// ImagesOf reads a provider for its images: variables are not replaced, and no namespace is needed.
func (l Loader) ImagesOf(ctx context.Context, c installation.Choice) (installation.Item, error) {
	return l.item(ctx, c, component.Options{TargetNamespace: cmp.Or(c.Reference.Namespace, "default"), Raw: true})
}

func (l Loader) item(ctx context.Context, c installation.Choice, o component.Options) (installation.Item, error) {
	source, version, err := l.Find(ctx, c.Type, c.Reference)
	if err != nil {
		return installation.Item{}, err
	}
	o.Lookup, o.AlterImage = l.Config.Variable, l.Config.AlterImage
	contract, err := Contract(ctx, source, version)
	if err != nil {
		return installation.Item{}, err
	}
	components, err := component.Load(ctx, source, version, o)
	return installation.Item{Components: components, Contract: contract}, err
}

// Items reads several providers.
func (l Loader) Items(ctx context.Context, choices []installation.Choice, namespace string) ([]installation.Item, error) {
	var out []installation.Item
	for _, c := range choices {
		item, err := l.Item(ctx, c, namespace)
		if err != nil {
			return nil, err
		}
		out = append(out, item)
	}
	return out, nil
}

// Latest is the latest version of an installed provider that has the contract, or one that goes together with it; empty: there is
// none. The core has the contract itself.
func (l Loader) Latest(ctx context.Context, p inventory.Provider, contract string) (string, error) {
	source, err := l.sourceOf(p)
	if err != nil {
		return "", err
	}
	version, err := source.Latest(ctx, contract)
	if known := fault.As(err); known != nil && known.Reason == repository.ReasonNoVersion {
		return "", nil
	}
	if err != nil || p.Type != provider.Core {
		return version, err
	}
	has, err := Contract(ctx, source, version)
	if err != nil || has != contract {
		return "", err
	}
	return version, nil
}

// sourceOf is the repository of an installed provider.
func (l Loader) sourceOf(p inventory.Provider) (*repository.Source, error) {
	source, err := l.Source(p.Type, p.Name)
	if known := fault.As(err); known != nil && known.Reason == configfile.ReasonUnknownProvider {
		return nil, fault.New(fault.Gone, configfile.ReasonUnknownProvider,
			"it is installed, and not in the configuration: add %q of the type %s to providers in %s", p.Name, p.Type, cmp.Or(l.Config.Path, "clusterctl.yaml")).From(err)
	}
	return source, err
}

// ContractOf is the contract of the version of a provider that is installed.
func (l Loader) ContractOf(ctx context.Context, p inventory.Provider) (string, error) {
	source, err := l.sourceOf(p)
	if err != nil {
		return "", err
	}
	return Contract(ctx, source, p.Version)
}

// Contract is that of a version of a provider.
func Contract(ctx context.Context, s *repository.Source, version string) (string, error) {
	parsed, err := repository.ParseVersion(version)
	if err != nil {
		return "", fault.New(fault.Invalid, repository.ReasonNoVersion, "%q of provider %s is no semantic version; write it as v1.2.3", version, s.Provider().Label())
	}
	metadata, err := s.Metadata(ctx, version)
	if err != nil {
		return "", err
	}
	series, ok := metadata.ForVersion(parsed)
	if !ok {
		return "", fault.New(fault.Invalid, repository.ReasonMetadata,
			"metadata.yaml of provider %s %s does not say which contract %d.%d has; use a version whose release does", s.Provider().Label(), version, parsed.Major, parsed.Minor)
	}
	return series.Contract, nil
}
