package install

import (
	"cmp"
	"context"

	"github.com/slipwayhq/slipway/internal/clusterctl/provider"
	"github.com/slipwayhq/slipway/internal/clusterctl/repository"
	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/version"
)

// ProviderLoader loads providers from their repositories. Commands with the flag --config create it from the
// configuration file of clusterctl.
type ProviderLoader struct {
	Config  *repository.ConfigFile
	Options repository.Options
}

// NewProviderLoader returns a loader with the variables and overrides of a configuration file. Package cli/term calls
// it for the flag --config.
func NewProviderLoader(config *repository.ConfigFile) ProviderLoader {
	return ProviderLoader{Config: config, Options: repository.Options{Variable: config.Variable, Overrides: config.OverridesFolder()}}
}

// Source returns the repository of a provider, without selecting a version.
func (l ProviderLoader) Source(t provider.Type, name string) (*repository.Source, error) {
	p, err := l.Config.Provider(t, name)
	if err != nil {
		return nil, err
	}
	return repository.Open(p, l.Options)
}

// Find returns the repository of a provider and the version: the specified one, or the latest with the contract of this
// build. [ProviderLoader.Load] calls it, and so do the commands that only print a file of a release.
func (l ProviderLoader) Find(ctx context.Context, t provider.Type, r provider.Reference) (*repository.Source, string, error) {
	source, err := l.Source(t, r.Name)
	if err != nil {
		return nil, "", err
	}
	version, err := source.Version(ctx, r.Version, repository.Contract)
	return source, version, err
}

// Load loads a provider in the specified version, or the latest with the contract of this build. `slipway upgrade
// apply` calls it for each provider to upgrade.
func (l ProviderLoader) Load(ctx context.Context, c Choice, namespace string) (LoadedProvider, error) {
	return l.load(ctx, c, repository.ComponentOptions{TargetNamespace: cmp.Or(c.Reference.Namespace, namespace)})
}

// ImagesOf loads a provider for its images, without replacing variables and without requiring a namespace. `slipway
// init list-images` calls it.
func (l ProviderLoader) ImagesOf(ctx context.Context, c Choice) (LoadedProvider, error) {
	return l.load(ctx, c, repository.ComponentOptions{TargetNamespace: cmp.Or(c.Reference.Namespace, "default"), Raw: true})
}

func (l ProviderLoader) load(ctx context.Context, c Choice, o repository.ComponentOptions) (LoadedProvider, error) {
	source, version, err := l.Find(ctx, c.Type, c.Reference)
	if err != nil {
		return LoadedProvider{}, err
	}
	o.Lookup, o.AlterImage = l.Config.Variable, l.Config.AlterImage
	contract, err := readContract(ctx, source, version)
	if err != nil {
		return LoadedProvider{}, err
	}
	components, err := repository.LoadComponents(ctx, source, version, o)
	return LoadedProvider{Components: components, Contract: contract}, err
}

// LoadAll loads several providers. `slipway init` calls it.
func (l ProviderLoader) LoadAll(ctx context.Context, choices []Choice, namespace string) ([]LoadedProvider, error) {
	var out []LoadedProvider
	for _, c := range choices {
		item, err := l.Load(ctx, c, namespace)
		if err != nil {
			return nil, err
		}
		out = append(out, item)
	}
	return out, nil
}

// Latest returns the latest version of an installed provider that is compatible with the contract, or "" if there is
// none. For the core provider, the contract must be equal. `slipway upgrade plan` and `slipway upgrade apply` call it.
func (l ProviderLoader) Latest(ctx context.Context, p provider.Installed, contract string) (string, error) {
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
	has, err := readContract(ctx, source, version)
	if err != nil || has != contract {
		return "", err
	}
	return version, nil
}

// sourceOf returns the repository of an installed provider.
func (l ProviderLoader) sourceOf(p provider.Installed) (*repository.Source, error) {
	source, err := l.Source(p.Type, p.Name)
	if known := fault.As(err); known != nil && known.Reason == repository.ReasonUnknownProvider {
		return nil, fault.New(fault.Gone, repository.ReasonUnknownProvider,
			"it is installed, but not configured: add %q of type %s to providers in %s", p.Name, p.Type, cmp.Or(l.Config.Path, "clusterctl.yaml")).From(err)
	}
	return source, err
}

// InstalledContract returns the contract of the installed version of a provider. `slipway upgrade apply` calls it for
// the providers that are not upgraded, whose contracts must remain compatible.
func (l ProviderLoader) InstalledContract(ctx context.Context, p provider.Installed) (string, error) {
	source, err := l.sourceOf(p)
	if err != nil {
		return "", err
	}
	return readContract(ctx, source, p.Version)
}

// readContract returns the contract of a provider version.
func readContract(ctx context.Context, s *repository.Source, release string) (string, error) {
	parsed, err := version.ParseSemantic(release)
	if err != nil {
		return "", fault.New(fault.Invalid, repository.ReasonNoVersion, "version %q of provider %s is not a semantic version; write it as v1.2.3", release, s.Provider().Label())
	}
	metadata, err := s.Metadata(ctx, release)
	if err != nil {
		return "", err
	}
	series, ok := metadata.ForVersion(parsed)
	if !ok {
		return "", fault.New(fault.Invalid, repository.ReasonMetadata,
			"metadata.yaml of provider %s %s has no releaseSeries for %d.%d; use a version whose release has one", s.Provider().Label(), release, parsed.Major, parsed.Minor)
	}
	return series.Contract, nil
}
