package repository

import (
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/slipwayhq/slipway/internal/clusterctl/provider"
	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/providerset"
)

// Default values for cert-manager.
const (
	defaultCertManagerVersion = "v1.21.1"
	defaultCertManagerTimeout = 10 * time.Minute
)

// ConfigFile is the content of clusterctl's configuration file (clusterctl.yaml), overridden by environment variables.
// [LoadConfig] reads it for the commands with the flag --config.
type ConfigFile struct {
	// Path is the path or URL of the file; empty if there is none.
	Path string
	// CertManager configures cert-manager.
	CertManager CertManager
	// Images are image overrides by "all", component, or component/image.
	Images map[string]ImageOverride

	environment ConfigEnvironment
	providers   []provider.Provider
	overrides   string
	variables   map[string]string
}

// CertManager configures the installation of cert-manager. Package certificates installs cert-manager by it.
type CertManager struct {
	// URL is the URL of the manifest; a default if it is not set.
	URL string `json:"url"`
	// Version is the version of the manifest.
	Version string `json:"version"`
	// Timeout limits the time until cert-manager is ready.
	Timeout time.Duration `json:"timeout"`
	// ExternallyProvisioned means that cert-manager is installed and upgraded by other means.
	ExternallyProvisioned bool `json:"externallyProvisioned"`
}

// Variable returns the value of a variable from the environment or else from the file. Names are looked up in upper
// case with _ for -, as with clusterctl. An environment variable with the exact name is used, too. Templates and
// components get their values from it.
func (f *ConfigFile) Variable(name string) (string, bool) {
	if value, ok := f.environment.Lookup(environmentName(name)); ok {
		return value, true
	}
	if value, ok := f.environment.Lookup(name); ok && name != "" {
		return value, true
	}
	value, ok := f.variables[environmentName(name)]
	return value, ok
}

// Providers returns the built-in providers and the providers of the file, sorted. A provider of the file replaces a
// built-in one with the same type and name. `slipway config repositories` lists them.
func (f *ConfigFile) Providers() []provider.Provider {
	all := slices.Clone(f.providers)
	for _, p := range provider.Builtin() {
		if !slices.ContainsFunc(all, func(q provider.Provider) bool { return provider.Compare(p, q) == 0 }) {
			all = append(all, p)
		}
	}
	slices.SortFunc(all, provider.Compare)
	return all
}

// Provider returns the provider with the given type and name. Package install opens the repository of this provider.
func (f *ConfigFile) Provider(t provider.Type, name string) (provider.Provider, error) {
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
			"provider %q of type %s is built into slipway: \"slipway up\" and \"slipway manager\" run it without an installation; to install it as components, add the URL of a slipway release to providers in %s",
			name, t, f.where())
	}
	return provider.Provider{}, fault.New(fault.Gone, ReasonUnknownProvider,
		"provider %q of type %s is unknown; known providers: %s; add others to providers in %s", name, t, strings.Join(names, ", "), f.where())
}

// where returns the name of the file for messages.
func (f *ConfigFile) where() string {
	if f.Path == "" {
		return "clusterctl.yaml"
	}
	return f.Path
}

// OverridesFolder returns the folder whose files override the files of repositories. Package install passes it to the
// sources of all providers.
func (f *ConfigFile) OverridesFolder() string {
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
