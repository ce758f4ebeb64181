package lint

import (
	"slices"
	"strings"

	"github.com/slipwayhq/slipway/internal/clusterctl/provider"
	"github.com/slipwayhq/slipway/internal/clusterctl/repository"
	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/version"
	"github.com/slipwayhq/slipway/sdk/contract"
)

// repositoryRules are the rules of `slipway provider lint` for the files of a release. Their names are stable.
func repositoryRules() []Rule {
	return []Rule{
		{"version-folder", "the folder of a release is named after its semantic version, with the prefix v", true, versionFolder},
		{"provider-folder", "the parent folder is named TYPE-NAME after the provider, or cluster-api for the core provider", true, providerFolder},
		{"metadata-present", "a release has metadata.yaml", true, metadataPresent},
		{"metadata-valid", "metadata.yaml is valid and has no unknown fields", true, metadataValid},
		{"metadata-series", "metadata.yaml has a releaseSeries for the release", true, metadataSeries},
		{"metadata-contract", "the releaseSeries of the release has a supported contract", true, metadataContract},
		{"components-present", "a release has one components file, named after the type of the provider", true, componentsPresent},
		{"variables-readable", "variables are written as ${NAME} or ${NAME:=default}", true, variablesReadable},
		{"variable-defaults", "a default is not empty: upstream clusterctl ignores an empty default and requires a value", false, variableDefaults},
		{"manifest-readable", "components, templates and classes are YAML of Kubernetes objects", true, manifestReadable},
	}
}

func versionFolder(r *release, report reporter) {
	if _, err := version.ParseSemantic(r.version); err != nil || !strings.HasPrefix(r.version, "v") {
		report("", "", "the folder is %q: name it after the version, for example v1.0.0", r.version)
	}
}

func providerFolder(r *release, report reporter) {
	if r.kind == "" {
		return
	}
	name, ok := strings.CutPrefix(r.label, r.kind.Flag()+"-")
	if r.kind == provider.Core {
		name, ok = r.label, r.label == provider.CoreName
	}
	if !ok {
		report("", "", "the folder of the provider is %q: name it %s", r.label, r.kind.Label("NAME"))
		return
	}
	if err := (provider.Provider{Name: name, Type: r.kind, URL: "/" + r.label}).Validate(); err != nil {
		report("", "", "%s", fault.UserMessage(err))
	}
}

func metadataPresent(r *release, report reporter) {
	if _, ok := r.files[repository.MetadataFile]; !ok {
		report(repository.MetadataFile, "", "the file is missing: add it, with a releaseSeries for %s", r.version)
	}
}

func metadataValid(r *release, report reporter) {
	data, ok := r.files[repository.MetadataFile]
	if !ok {
		return
	}
	for _, problem := range repository.LintMetadata(data) {
		report(repository.MetadataFile, "", "%s", problem)
	}
}

// series returns the series of the release. readable is false if metadata.yaml or the version cannot be parsed.
func (r *release) series() (s repository.ReleaseSeries, readable, found bool) {
	m, err := repository.ParseMetadata(r.files[repository.MetadataFile], r.label)
	v, bad := version.ParseSemantic(r.version)
	if err != nil || bad != nil {
		return s, false, false
	}
	s, found = m.ForVersion(v)
	return s, true, found
}

func metadataSeries(r *release, report reporter) {
	if _, readable, found := r.series(); readable && !found {
		report(repository.MetadataFile, "", "no releaseSeries matches %s: add one with its major and minor version", r.version)
	}
}

func metadataContract(r *release, report reporter) {
	s, _, found := r.series()
	if found && !slices.Contains(contract.Versions(), contract.Version(s.Contract)) {
		report(repository.MetadataFile, "", "the releaseSeries %d.%d has contract %s, which is not supported; supported contracts: %v", s.Major, s.Minor, s.Contract, contract.Versions())
	}
}

func componentsPresent(r *release, report reporter) {
	var known []string
	for _, t := range provider.Types() {
		known = append(known, t.ComponentsFile())
	}
	for _, name := range r.components {
		if typeOf(name) == "" {
			report(name, "", "no provider type has a components file of this name; valid names: %s", strings.Join(known, ", "))
		}
	}
	switch {
	case len(r.components) == 0:
		report("", "", "the release has no components file: add one of %s", strings.Join(known, ", "))
	case len(r.components) > 1:
		report("", "", "the release has several components files, %s: use a separate folder for each provider", strings.Join(r.components, ", "))
	}
}

// variablesReadable skips ClusterClass files, which the rules class-readable and class-variables check.
func variablesReadable(r *release, report reporter) {
	for _, name := range r.names("") {
		if name == repository.MetadataFile || strings.HasPrefix(name, classPrefix) {
			continue
		}
		if _, err := (repository.Envsubst{}).Variables(r.files[name]); err != nil {
			report(name, "", "%s", fault.UserMessage(err))
		}
	}
}

func variableDefaults(r *release, report reporter) {
	for _, name := range r.names("") {
		if name == repository.MetadataFile || strings.HasPrefix(name, classPrefix) {
			continue
		}
		variables, err := repository.Envsubst{}.Variables(r.files[name])
		if err != nil {
			continue
		}
		for _, v := range variables {
			if v.Default != nil && *v.Default == "" {
				report(name, "", "the default of ${%s} is empty: use a default that is not empty", v.Name)
			}
		}
	}
}

func manifestReadable(r *release, report reporter) {
	for _, name := range r.names("") {
		if name == repository.MetadataFile {
			continue
		}
		if _, err := (repository.Envsubst{}).Variables(r.files[name]); err != nil {
			continue
		}
		objects, err := r.read(name)
		switch {
		case err != nil:
			report(name, "", "%s", fault.UserMessage(err))
		case len(objects) == 0:
			report(name, "", "the file has no objects")
		}
	}
}
