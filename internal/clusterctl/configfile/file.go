package configfile

import (
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/slipwayhq/slipway/internal/clusterctl/provider"
	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/providerset"
)

// Defaults of cert-manager.
const (
	DefaultCertManagerVersion = "v1.21.1"
	defaultCertManagerTimeout = 10 * time.Minute
)

// File is what the configuration file says, with the environment in front of it.
type File struct {
	// Path or address of the file; empty: there is none.
	Path string
	// CertManager says how cert-manager comes to the management cluster.
	CertManager CertManager
	// Images are overrides of images by "all", component, or component/image.
	Images map[string]Image

	environment Environment
	providers   []provider.Provider
	overrides   string
	variables   map[string]string
}

// CertManager says which cert-manager is installed.
type CertManager struct {
	// URL of the manifest; the usual one if it was not set.
	URL string `json:"url"`
	// Version that the manifest has.
	Version string `json:"version"`
	// Timeout is how long it may take to get ready.
	Timeout time.Duration `json:"timeout"`
	// ExternallyProvisioned says that someone else installs and upgrades it.
	ExternallyProvisioned bool `json:"externallyProvisioned"`
}

// Variable is the value of a variable: that of the environment, else that of the file. Both are looked up in upper case with _ for -, as with
// clusterctl; a variable of the environment with just this name counts, too.
func (f *File) Variable(name string) (string, bool) {
	if value, ok := f.environment.Lookup(environmentName(name)); ok {
		return value, true
	}
	if value, ok := f.environment.Lookup(name); ok && name != "" {
		return value, true
	}
	value, ok := f.variables[environmentName(name)]
	return value, ok
}

// Providers are the built-in ones and those of the file, sorted; the file's replace built-in ones of the same type and name.
func (f *File) Providers() []provider.Provider {
	all := slices.Clone(f.providers)
	for _, p := range provider.Builtin() {
		if !slices.ContainsFunc(all, func(q provider.Provider) bool { return provider.Compare(p, q) == 0 }) {
			all = append(all, p)
		}
	}
	slices.SortFunc(all, provider.Compare)
	return all
}

// Provider is the one of a type and name.
func (f *File) Provider(t provider.Type, name string) (provider.Provider, error) {
	var names []string
	for _, p := range f.Providers() {
		if p.Type == t && p.Name == name {
			return p, nil
		}
		if p.Type == t {
			names = append(names, p.Name)
		}
	}
	if slices.Contains(providerset.Names(), providerset.Name(t.Label(name))) {
		return provider.Provider{}, fault.New(fault.Gone, ReasonUnknownProvider,
			"provider %q of the type %s is built into slipway: \"slipway up\" and \"slipway manager\" run it, and there is nothing to install; its components are in a release of slipway, whose URL belongs in providers in %s",
			name, t, f.where())
	}
	return provider.Provider{}, fault.New(fault.Gone, ReasonUnknownProvider,
		"there is no provider %q of the type %s; there are: %s; add others to providers in %s", name, t, strings.Join(names, ", "), f.where())
}

// where is the file as it is called in messages.
func (f *File) where() string {
	if f.Path == "" {
		return "clusterctl.yaml"
	}
	return f.Path
}

// OverridesFolder is the folder whose files take the place of those of repositories.
func (f *File) OverridesFolder() string {
	if f.overrides != "" {
		return f.overrides
	}
	if folder := f.environment.get("XDG_CONFIG_HOME"); folder != "" {
		return filepath.Join(folder, "cluster-api", "overrides")
	}
	if home := f.environment.get("HOME"); home != "" {
		return filepath.Join(home, ".config", "cluster-api", "overrides")
	}
	return ""
}
