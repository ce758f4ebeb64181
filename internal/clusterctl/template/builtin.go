package template

import (
	"fmt"
	"strings"

	"github.com/slipwayhq/slipway/config/classes"
	"github.com/slipwayhq/slipway/examples"
	"github.com/slipwayhq/slipway/internal/buildinfo"
	"github.com/slipwayhq/slipway/internal/clusterctl/provider"
	"github.com/slipwayhq/slipway/internal/clusterctl/repository"
	"github.com/slipwayhq/slipway/internal/release"
)

// BuiltinName is the name of the built-in infrastructure provider.
const BuiltinName = "local"

// BuiltinNetwork is the variable of its templates with the first two octets of a cluster's subnet. `slipway generate
// cluster` sets it.
const BuiltinNetwork = release.Network

// Builtin returns the built-in infrastructure provider as a repository with one version, the version of this build, and
// with the same templates and ClusterClasses as a release. "slipway generate cluster" uses it if no other provider is
// selected.
func Builtin() (*repository.Source, error) {
	files := map[string]string{}
	for _, flavor := range release.Flavors() {
		objects, err := flavor.Objects(examples.Files)
		if err != nil {
			return nil, err
		}
		text, err := release.ComponentsYAML(objects)
		if err != nil {
			return nil, fmt.Errorf("writing template %s: %w", flavor.File(), err)
		}
		files[flavor.File()] = string(text)
	}
	for _, name := range classes.Names() {
		objects, _, err := classes.Objects(name, "")
		if err != nil {
			return nil, err
		}
		text, err := release.ComponentsYAML(objects)
		if err != nil {
			return nil, fmt.Errorf("writing ClusterClass %s: %w", name, err)
		}
		files["clusterclass-"+name+".yaml"] = string(text)
	}
	version := BuiltinVersion()
	p := provider.Provider{Name: BuiltinName, Type: provider.Infrastructure}
	return repository.New(p, repository.Memory{
		Default: version, Components: p.Type.ComponentsFile(), Files: map[string]map[string]string{version: files},
	}, repository.Options{}), nil
}

// BuiltinVersion returns the version of the built-in providers. `slipway generate cluster` uses it if no other provider
// is selected.
func BuiltinVersion() string { return strings.ReplaceAll(buildinfo.Version(), "/", "-") }
