package nodeimage

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"sort"
	"strings"

	"golang.org/x/mod/modfile"
	"golang.org/x/mod/semver"
)

// goModule is a Go module made for a build: go.mod, and the files of its main package if it has one, by name.
type goModule struct {
	Mod   string
	Files map[string]string
}

// key stands for the module's contents.
func (m goModule) key() string {
	parts := []string{m.Mod}
	for _, name := range slices.Sorted(maps.Keys(m.Files)) {
		parts = append(parts, name, m.Files[name])
	}
	return keyOf(parts...)
}

// requirement is a module at a version.
type requirement struct{ Path, Version string }

// stagingVersion returns the version of the modules that are released with a Kubernetes version: v0.36.3 with v1.36.3.
func stagingVersion(kubernetes string) string { return "v0." + strings.TrimPrefix(kubernetes, "v1.") }

// moduleMaker makes modules for programs that are built with the modules of one version of Kubernetes.
type moduleMaker struct {
	// kubernetes is the version, mod the go.mod of its source.
	kubernetes string
	mod        []byte
	// pins are versions to prefer where they are newer.
	pins map[string]string
}

// make returns a module that requires r. Kubernetes names the modules that it is released with (its staging modules)
// at v0.0.0 and finds them in its own tree; outside that tree each is replaced by its release. Everything else is
// required at Kubernetes' own version, or at the pinned one if that is newer.
func (k moduleMaker) make(r requirement) (goModule, error) {
	in, err := modfile.Parse("go.mod", k.mod, nil)
	if err != nil {
		return goModule{}, fmt.Errorf("reading the go.mod of Kubernetes %s: %w", k.kubernetes, err)
	}
	var replaces []string
	requires := []string{fmt.Sprintf("\t%s %s\n", r.Path, r.Version)}
	for _, dep := range in.Require {
		path, version := dep.Mod.Path, dep.Mod.Version
		if version == "v0.0.0" {
			replaces = append(replaces, fmt.Sprintf("\t%s => %s %s\n", path, path, stagingVersion(k.kubernetes)))
			continue
		}
		if semver.Compare(k.pins[path], version) > 0 {
			version = k.pins[path]
		}
		requires = append(requires, fmt.Sprintf("\t%s %s\n", path, version))
	}
	if len(replaces) == 0 {
		return goModule{}, fmt.Errorf("the go.mod of Kubernetes %s names no staging modules", k.kubernetes)
	}
	sort.Strings(replaces)
	sort.Strings(requires)
	return goModule{Mod: fmt.Sprintf("module slipway.dev/node/build\n\ngo %s\n\nreplace (\n%s)\n\nrequire (\n%s)\n",
		in.Go.Version, strings.Join(replaces, ""), strings.Join(requires, ""))}, nil
}

// withMain returns a module whose main package is the given source.
func (k moduleMaker) withMain(m mainSource) (goModule, error) {
	out, err := k.make(m.module)
	out.Files = map[string]string{"main.go": m.source}
	return out, err
}

// parsePins reads lines of module and version; # begins a comment.
func parsePins(text string) (map[string]string, error) {
	pins := map[string]string{}
	for _, line := range lines(text) {
		f := strings.Fields(line)
		if len(f) != 2 || !semver.IsValid(f[1]) {
			return nil, fmt.Errorf("reading pinned modules: %q is not a module and a version", line)
		}
		pins[f[0]] = f[1]
	}
	return pins, nil
}

// lines returns the lines of a text that are neither empty nor a comment.
func lines(text string) []string {
	var out []string
	for _, line := range strings.Split(text, "\n") {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
			out = append(out, line)
		}
	}
	return out
}

var blankImport = regexp.MustCompile(`(?m)^\s*_ "([^"]+)".*\n`)

// withoutImports returns Go source without the blank imports of packages whose last element is one of names. That is
// how plugins are left out that need a cloud, a C compiler or very large modules.
func withoutImports(source string, names ...string) string {
	return blankImport.ReplaceAllStringFunc(source, func(line string) string {
		path := blankImport.FindStringSubmatch(line)[1]
		for _, n := range names {
			if strings.HasSuffix(path, "/"+n) {
				return ""
			}
		}
		return line
	})
}

// corednsMain returns a main package for CoreDNS from the file in which it imports its plugins.
func corednsMain(plugins string) (string, error) {
	var imports strings.Builder
	for _, m := range blankImport.FindAllStringSubmatch(withoutImports(plugins, "azure", "clouddns", "route53", "nomad", "trace"), -1) {
		fmt.Fprintf(&imports, "\t_ %q\n", m[1])
	}
	if !strings.Contains(imports.String(), "/plugin/kubernetes\"") {
		return "", fmt.Errorf("the source of CoreDNS does not import its plugin for Kubernetes: this version is not known to this program")
	}
	return "package main\n\nimport (\n\t\"github.com/coredns/coredns/coremain\"\n\n" + imports.String() + ")\n\nfunc main() { coremain.Run() }\n", nil
}

// flannelMain returns flanneld's own main package without the backends that need a cloud's modules (tencentvpc), C
// (udp) or a daemon (ipsec).
func flannelMain(source string) string { return withoutImports(source, "tencentvpc", "udp", "ipsec") }
