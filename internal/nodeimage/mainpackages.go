package nodeimage

import (
	"fmt"
	"regexp"
	"strings"
)

var blankImport = regexp.MustCompile(`(?m)^\s*_ "([^"]+)".*\n`)

// withoutImports removes the blank imports of packages whose last path element is one of names from Go source. A build
// changes the sources of CoreDNS and flannel with it, to exclude plugins that need a cloud, a C compiler or very large
// modules.
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

// corednsMain returns a main package for CoreDNS, derived from the file that imports its plugins.
func corednsMain(plugins string) (string, error) {
	var imports strings.Builder
	for _, m := range blankImport.FindAllStringSubmatch(withoutImports(plugins, "azure", "clouddns", "route53", "nomad", "trace"), -1) {
		fmt.Fprintf(&imports, "\t_ %q\n", m[1])
	}
	if !strings.Contains(imports.String(), "/plugin/kubernetes\"") {
		return "", fmt.Errorf("the source of CoreDNS does not import its plugin for Kubernetes: this version is not supported")
	}
	return "package main\n\nimport (\n\t\"github.com/coredns/coredns/coremain\"\n\n" + imports.String() + ")\n\nfunc main() { coremain.Run() }\n", nil
}

// flannelMain returns flanneld's main package without the backends that need the modules of a cloud (tencentvpc), C
// (udp) or a daemon (ipsec).
func flannelMain(source string) string { return withoutImports(source, "tencentvpc", "udp", "ipsec") }

// withMain returns a module with the given source as its main package. The plan of a build calls it for CoreDNS and
// flannel.
func withMain(k ModuleMaker, m mainSource) (GoModule, error) {
	out, err := k.Make(m.module)
	out.Files = map[string]string{"main.go": m.source}
	return out, err
}
