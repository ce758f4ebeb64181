package nodeimage

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"sort"
	"strings"

	"golang.org/x/mod/modfile"

	"github.com/slipwayhq/slipway/internal/version"
)

// GoModule is a Go module that a build creates to compile a program in it: its go.mod and the files of its own
// packages, by path. [ModuleMaker] creates it, and [GoToolchain] writes it to the cache.
type GoModule struct {
	Mod   string
	Files map[string]string
	// Sealed is set if all dependencies are known: a module without a known checksum is an error.
	Sealed bool
}

// key returns a hash of the module's contents.
func (m GoModule) key() string {
	parts := []string{m.Mod}
	for _, name := range slices.Sorted(maps.Keys(m.Files)) {
		parts = append(parts, name, m.Files[name])
	}
	return keyOf(parts...)
}

// GoRequirement is a module at a version. [GoToolchain] downloads it, or a [GoModule] requires it.
type GoRequirement struct{ Path, Version string }

// stagingVersion returns the version of the staging modules of a Kubernetes version: v0.36.3 for v1.36.3.
func stagingVersion(kubernetes string) string { return "v0." + strings.TrimPrefix(kubernetes, "v1.") }

// ModuleMaker creates modules for programs that are built with the dependencies of one version of Kubernetes. The plan
// of a node image and package versions fill it in.
type ModuleMaker struct {
	// Path is the path of the created module. Default: slipway.dev/node/build.
	Path string
	// Kubernetes is the version, Mod the go.mod of its source.
	Kubernetes string
	Mod        []byte
	// Pins are versions that replace older ones.
	Pins map[string]string
	// Sealed is copied to the created modules.
	Sealed bool
}

// Make returns a module that requires r. Kubernetes requires its staging modules at v0.0.0 and replaces them with
// directories of its repository; here, each is replaced with its published version. All other modules are required at
// the version that Kubernetes requires, or at the pinned version if that is newer.
func (k ModuleMaker) Make(r GoRequirement) (GoModule, error) {
	in, err := modfile.Parse("go.mod", k.Mod, nil)
	if err != nil {
		return GoModule{}, fmt.Errorf("reading the go.mod of Kubernetes %s: %w", k.Kubernetes, err)
	}
	var replaces []string
	requires := []string{fmt.Sprintf("\t%s %s\n", r.Path, r.Version)}
	for _, dep := range in.Require {
		path, required := dep.Mod.Path, dep.Mod.Version
		if required == "v0.0.0" {
			replaces = append(replaces, fmt.Sprintf("\t%s => %s %s\n", path, path, stagingVersion(k.Kubernetes)))
			continue
		}
		if version.IsOlder(required, k.Pins[path]) {
			required = k.Pins[path]
		}
		requires = append(requires, fmt.Sprintf("\t%s %s\n", path, required))
	}
	if len(replaces) == 0 {
		return GoModule{}, fmt.Errorf("the go.mod of Kubernetes %s names no staging modules", k.Kubernetes)
	}
	sort.Strings(replaces)
	sort.Strings(requires)
	return GoModule{Sealed: k.Sealed, Mod: fmt.Sprintf("module %s\n\ngo %s\n\nreplace (\n%s)\n\nrequire (\n%s)\n",
		cmp.Or(k.Path, "slipway.dev/node/build"), in.Go.Version, strings.Join(replaces, ""), strings.Join(requires, ""))}, nil
}
