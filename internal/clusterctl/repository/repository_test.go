package repository_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/slipwayhq/slipway/internal/clusterctl/provider"
	"github.com/slipwayhq/slipway/internal/clusterctl/repository"
	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/version"
)

func acme(url string) provider.Provider {
	return provider.Provider{Name: "acme", Type: provider.Infrastructure, URL: url}
}

func memory(files map[string]map[string]string) *repository.Source {
	return repository.New(acme("memory"), repository.Memory{Default: repository.Latest, Components: "infrastructure-components.yaml", Files: files}, repository.Options{})
}

func write(t *testing.T, path, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

// A flavor that is not there is answered with those that are.
func TestFlavorsOfMemory(t *testing.T) {
	s := memory(map[string]map[string]string{"v1.0.0": {
		"cluster-template.yaml": "a", "cluster-template-pool.yaml": "b", "clusterclass-local.yaml": "c", "metadata.yaml": "d",
	}})
	for name, read := range map[string]func() error{
		"file cluster-template-x.yaml does not exist in version v1.0.0; available files: cluster-template-pool.yaml, cluster-template.yaml": func() error {
			_, err := s.Template(t.Context(), "v1.0.0", "x")
			return err
		},
		"file clusterclass-x.yaml does not exist in version v1.0.0; available files: clusterclass-local.yaml": func() error {
			_, err := s.ClusterClass(t.Context(), "v1.0.0", "x")
			return err
		},
		"the repository has no file cluster-template.yaml for version v2.0.0; check the version and that its release is complete": func() error {
			_, err := s.Template(t.Context(), "v2.0.0", "")
			return err
		},
	} {
		if err := read(); err == nil || fault.KindOf(err) != fault.Gone || !strings.Contains(err.Error(), name) {
			t.Errorf("%v, want %s", err, name)
		}
	}
}

// CC2-05, CC2-01: a folder of releases.
func TestLocal(t *testing.T) {
	base := t.TempDir()
	folder := filepath.Join(base, "infrastructure-acme")
	write(t, filepath.Join(folder, "v1.0.0", "infrastructure-components.yaml"), "kind: A")
	write(t, filepath.Join(folder, "v1.0.0", "metadata.yaml"), metadata("1.0 v1beta2"))
	write(t, filepath.Join(folder, "v1.1.0", "metadata.yaml"), metadata("1.0 v1beta2", "1.1 v1beta2"))
	write(t, filepath.Join(folder, "v1.1.0", "infrastructure-components.yaml"), "kind: B")
	write(t, filepath.Join(folder, "notes", "x"), "")
	write(t, filepath.Join(folder, "v2.0.0"), "a file")
	if err := os.Mkdir(filepath.Join(folder, "v1.1.0", "clusterclass-a.yaml"), 0o700); err != nil {
		t.Fatal(err)
	}
	for url, want := range map[string]string{
		folder + "/latest/infrastructure-components.yaml":             "v1.1.0",
		"file://" + folder + "/latest/infrastructure-components.yaml": "v1.1.0",
		folder + "/v1.0.0/infrastructure-components.yaml":             "v1.0.0",
	} {
		s, err := repository.Open(acme(url), repository.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if version, err := s.Version(t.Context(), "", "v1beta2"); err != nil || version != want {
			t.Errorf("%s: %s, %v", url, version, err)
		}
	}
	s, err := repository.Open(acme(folder+"/latest/infrastructure-components.yaml"), repository.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if data, err := s.Components(t.Context(), "v1.0.0"); err != nil || string(data) != "kind: A" {
		t.Errorf("%s, %v", data, err)
	}
	if versions, err := s.Versions(t.Context()); err != nil || cmp.Diff([]string{"v1.0.0", "v1.1.0"}, versions) != "" {
		t.Errorf("%v, %v", versions, err)
	}
	_, err = s.Template(t.Context(), "v1.0.0", "")
	wantFault(t, err, fault.Gone, folder+" has no file cluster-template.yaml for version v1.0.0")
	_, err = s.Template(t.Context(), "v1.9.0", "")
	wantFault(t, err, fault.Gone, "provider infrastructure-acme has no version v1.9.0; its newest versions are: v1.1.0, v1.0.0")
	_, err = s.ClusterClass(t.Context(), "v1.1.0", "a")
	wantFault(t, err, fault.Invalid, "not a regular file")
	missing, err := repository.Open(acme("/none/infrastructure-acme/latest/c.yaml"), repository.Options{})
	if err != nil {
		t.Fatal(err)
	}
	_, err = missing.Versions(t.Context())
	wantFault(t, err, fault.Gone, "the folder /none/infrastructure-acme does not exist")
}

// Names of versions, flavors and classes come from the command line and from templates: they lead to files of a release alone.
func TestNamesStayInside(t *testing.T) {
	base := t.TempDir()
	folder := filepath.Join(base, "infrastructure-acme")
	write(t, filepath.Join(folder, "v1.0.0", "metadata.yaml"), metadata("1.0 v1beta2"))
	write(t, filepath.Join(base, "clusterclass-x.yaml"), "outside")
	s, err := repository.Open(acme(folder+"/v1.0.0/c.yaml"), repository.Options{Overrides: base})
	if err != nil {
		t.Fatal(err)
	}
	for _, version := range []string{"..", ".", "", "v1.0.0/..", "a\\b"} {
		if _, err := s.File(t.Context(), version, "x"); fault.KindOf(err) != fault.Invalid {
			t.Errorf("version %q: %v", version, err)
		}
		if got, err := s.Version(t.Context(), version, "v1beta2"); version != "" && fault.KindOf(err) != fault.Invalid {
			t.Errorf("version %q: %s, %v", version, got, err)
		}
	}
	for _, name := range []string{"/../../../clusterclass-x", "x/../../../clusterclass-x", "a b"} {
		if data, err := s.ClusterClass(t.Context(), "v1.0.0", name); fault.KindOf(err) != fault.Invalid {
			t.Errorf("class %q: %s, %v", name, data, err)
		}
	}
}

// CX-22: a file of the overrides takes the place of the repository's; which versions there are is the repository's to say.
func TestOverrides(t *testing.T) {
	overrides := t.TempDir()
	write(t, filepath.Join(overrides, "infrastructure-acme", "v1.0.0", "infrastructure-components.yaml"), "kind: Mine")
	write(t, filepath.Join(overrides, "infrastructure-acme", "v1.0.0", "metadata.yaml"), metadata("1.0 v1beta1"))
	write(t, filepath.Join(overrides, "infrastructure-acme", "v9.0.0", "metadata.yaml"), metadata("9.0 v1beta2"))
	s := repository.New(acme("memory"), repository.Memory{Default: repository.Latest, Components: "infrastructure-components.yaml", Files: map[string]map[string]string{
		"v1.0.0": {"metadata.yaml": metadata("1.0 v1beta2"), "infrastructure-components.yaml": "kind: Theirs", "cluster-template.yaml": "kind: T"},
	}}, repository.Options{Overrides: overrides})
	version, err := s.Version(t.Context(), "", "v1beta2")
	if err != nil || version != "v1.0.0" {
		t.Fatalf("%s, %v", version, err)
	}
	if data, err := s.Components(t.Context(), version); err != nil || string(data) != "kind: Mine" {
		t.Errorf("%s, %v", data, err)
	}
	if data, err := s.Template(t.Context(), version, ""); err != nil || string(data) != "kind: T" {
		t.Errorf("%s, %v", data, err)
	}
	if m, err := s.Metadata(t.Context(), version); err != nil || m.ReleaseSeries[0].Contract != "v1beta1" {
		t.Errorf("%+v, %v", m, err)
	}
}

// CX-02: which version is the latest.
func TestLatest(t *testing.T) {
	of := func(series string, versions ...string) map[string]map[string]string {
		out := map[string]map[string]string{}
		for _, v := range versions {
			out[v] = map[string]string{"metadata.yaml": metadata(strings.Split(series, ",")...)}
		}
		return out
	}
	with := func(files map[string]map[string]string, change func(map[string]map[string]string)) map[string]map[string]string {
		change(files)
		return files
	}
	cases := map[string]struct {
		reason   string
		files    map[string]map[string]string
		contract string
		want     string
		kind     fault.Kind
		says     string
	}{
		"highest":          {"by number, not by letters", of("1.9 v1beta2,1.10 v1beta2", "v1.9.0", "v1.10.0", "v1.10.1"), "v1beta2", "v1.10.1", 0, ""},
		"no pre-release":   {"a release is what people want", of("1.0 v1beta2,2.0 v1beta2", "v1.0.0", "v2.0.0-rc.0"), "v1beta2", "v1.0.0", 0, ""},
		"only pre-release": {"better than nothing", of("2.0 v1beta2", "v2.0.0-rc.0", "v2.0.0-rc.1"), "v1beta2", "v2.0.0-rc.1", 0, ""},
		"older contract":   {"the latest of the series with the contract that is wanted", of("1.0 v1beta2,2.0 v1beta3", "v1.0.0", "v1.0.5", "v2.0.0"), "v1beta2", "v1.0.5", 0, ""},
		"newest series":    {"among series with the contract the newest that has releases", of("1.0 v1beta2,1.1 v1beta2,1.2 v1beta2,2.0 v1beta3", "v1.0.0", "v1.1.0", "v2.0.0"), "v1beta2", "v1.1.0", 0, ""},
		"compatible":       {"v1beta1 works beside core components of v1beta2", of("1.0 v1beta1", "v1.0.0"), "v1beta2", "v1.0.0", 0, ""},
		"exact is better":  {"than compatible, and newer", of("1.0 v1beta2,2.0 v1beta1", "v1.0.0", "v2.0.0"), "v1beta2", "v1.0.0", 0, ""},
		"incompatible":     {"the contracts that there are are listed", of("1.0 v1alpha3,2.0 v1alpha4", "v1.0.0", "v2.0.0"), "v1beta2", "", fault.Invalid, "v1alpha3, v1alpha4"},
		"old core":         {"v1beta2 does not work beside core components of v1beta1", of("1.0 v1beta2", "v1.0.0"), "v1beta1", "", fault.Invalid, "compatible with v1beta1"},
		"tag only": {"a tag is there before its files", with(of("1.0 v1beta2,1.1 v1beta2", "v1.0.0", "v1.1.0"), func(m map[string]map[string]string) { m["v1.2.0"] = nil }),
			"v1beta2", "v1.1.0", 0, ""},
		"no version":   {"tags that are no versions cannot be ordered", of("1.0 v1beta2", "nightly", "1.0"), "v1beta2", "", fault.Invalid, "no release with a semantic version"},
		"no files":     {"a repository without releases", of("1.0 v1beta2"), "v1beta2", "", fault.Invalid, "no release with a semantic version"},
		"not declared": {"the newest release forgot its own series: the newest that is declared", of("1.0 v1beta2", "v1.0.0", "v1.1.0"), "v1beta2", "v1.0.0", 0, ""},
		"broken metadata": {"what is wrong is said, no other release is taken silently", with(of("1.0 v1beta2", "v1.0.0"), func(m map[string]map[string]string) {
			m["v1.1.0"] = map[string]string{"metadata.yaml": "kind: Other"}
		}), "v1beta2", "", fault.Invalid, "infrastructure-acme v1.1.0 is not valid"},
		"without v": {"the tag is used as it is", of("1.0 v1beta2", "1.0.0"), "v1beta2", "1.0.0", 0, ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := memory(tc.files).Latest(t.Context(), tc.contract)
			if tc.says != "" {
				wantFault(t, err, tc.kind, tc.says)
				return
			}
			if err != nil || got != tc.want {
				t.Errorf("%s, %v, want %s: %s", got, err, tc.want, tc.reason)
			}
		})
	}
}

// failing cannot be reached.
type failing struct{ repository.Memory }

func (failing) File(context.Context, string, string) ([]byte, error) {
	return nil, fault.New(fault.Unreachable, repository.ReasonUnreachable, "away")
}

// A server that does not answer is no server without releases.
func TestLatestUnreachable(t *testing.T) {
	r := failing{repository.Memory{Default: repository.Latest, Files: map[string]map[string]string{"v1.0.0": nil}}}
	_, err := repository.New(acme("memory"), r, repository.Options{}).Version(t.Context(), "", "v1beta2")
	wantFault(t, err, fault.Unreachable, "away")
	if strings.Contains(err.Error(), "slipway create cluster") {
		t.Errorf("of a provider that has no other of ours: %v", err)
	}
	docker := provider.Provider{Name: "docker", Type: provider.Infrastructure}
	_, err = repository.New(docker, r, repository.Options{}).Version(t.Context(), "", "v1beta2")
	wantFault(t, err, fault.Unreachable, `away. The provider "local" of "slipway up" also runs Machines in containers on this host`)
}

// CC2-06: metadata.yaml, and what is wrong with it. Everything that keeps it from being used is said at once.
func TestMetadata(t *testing.T) {
	const head = "apiVersion: clusterctl.cluster.x-k8s.io/v1alpha3\nkind: Metadata\n"
	cases := map[string]struct {
		reason, text string
		unusable     []string
		lint         []string
	}{
		"right":        {"as the contract wants it", metadata("1.0 v1beta1", "1.1 v1beta2"), nil, nil},
		"comments":     {"released files have them", "# maps\n" + metadata("0.1 v1alpha4"), nil, nil},
		"no kind":      {"some released files have none", strings.Replace(metadata("1.0 v1beta2"), "kind: Metadata\n", "", 1), nil, []string{"kind is not set"}},
		"other kind":   {"it is another file", strings.Replace(metadata("1.0 v1beta2"), "Metadata", "Provider", 1), []string{`kind is "Provider"`}, nil},
		"no version":   {"it is another file", "releaseSeries: []", []string{`apiVersion is ""`, "releaseSeries is empty"}, []string{"kind is not set"}},
		"no series":    {"nothing could be chosen", head, []string{"releaseSeries is empty"}, nil},
		"no contract":  {"its providers could not be compared", head + "releaseSeries: [{major: 1, minor: 2}]", []string{`releaseSeries[0].contract is ""`}, nil},
		"odd contract": {"it is no API version", head + "releaseSeries: [{major: 1, minor: 2, contract: 1.0}]", []string{`contract is "1"`}, nil},
		"form":         {"it is no API version", head + "releaseSeries: [{major: 1, minor: 2, contract: beta1}]", []string{`contract is "beta1"`}, nil},
		"negative":     {"no version is", head + "releaseSeries: [{major: -1, minor: 2, contract: v1beta1}]", []string{"-1.2 is not a version"}, nil},
		"two answers":  {"which would count?", metadata("1.0 v1beta1", "1.0 v1beta2"), []string{"the contract v1beta1 and the contract v1beta2"}, []string{"listed twice"}},
		"twice":        {"harmless, and a mistake", metadata("1.0 v1beta2", "1.0 v1beta2"), nil, []string{"1.0 is listed twice"}},
		"unknown":      {"a later version may have more fields", metadata("1.0 v1beta2") + "other: 1\n", nil, []string{`unknown field "other"`}},
		"no yaml":      {"the parser's words help", "{", []string{"cannot be parsed"}, []string{"yaml"}},
		"empty":        {"an empty file is none", "", []string{"apiVersion is", "releaseSeries is empty"}, []string{"kind is not set"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := repository.ParseMetadata([]byte(tc.text), "infrastructure-acme v1.0.0")
			if len(tc.unusable) == 0 && err != nil {
				t.Errorf("%v: %s", err, tc.reason)
			}
			if len(tc.unusable) > 0 {
				wantFault(t, err, fault.Invalid, append(tc.unusable, "metadata.yaml of infrastructure-acme v1.0.0")...)
			}
			found := strings.Join(repository.LintMetadata([]byte(tc.text)), "\n")
			if (len(tc.lint) == 0 && len(tc.unusable) == 0) != (found == "") {
				t.Errorf("lint finds %q: %s", found, tc.reason)
			}
			for _, want := range tc.lint {
				if !strings.Contains(found, want) {
					t.Errorf("lint finds %q, not %q: %s", found, want, tc.reason)
				}
			}
		})
	}
}

// CC2-06: the series of versions and contracts.
func TestSeries(t *testing.T) {
	m, err := repository.ParseMetadata([]byte(metadata("0.3 v1alpha3", "1.9 v1beta1", "1.10 v1beta1", "2.0 v1beta2")), "x")
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]string{"v1.10.3": "v1beta1", "v2.0.0-rc.1": "v1beta2", "v0.3.0": "v1alpha3", "v3.0.0": "", "v2.1.0": ""} {
		v, err := version.ParseSemantic(text)
		if err != nil {
			t.Fatal(err)
		}
		series, ok := m.ForVersion(v)
		if ok != (want != "") || series.Contract != want {
			t.Errorf("%s: %+v, want %q", text, series, want)
		}
	}
	if got := m.ForContract("v1beta1"); len(got) != 2 || got[0].Minor != 10 {
		t.Errorf("the newest comes first: %+v", got)
	}
}
