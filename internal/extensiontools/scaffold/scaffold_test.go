package scaffold_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	runtimev1 "sigs.k8s.io/cluster-api/api/runtime/v1beta2"

	"github.com/slipwayhq/slipway/internal/clusterctl/lint"
	"github.com/slipwayhq/slipway/internal/extensiontools"
	"github.com/slipwayhq/slipway/internal/extensiontools/scaffold"
	"github.com/slipwayhq/slipway/internal/fault"
)

// shipped are the files that every project has.
func shipped(more ...string) []string {
	out := append(more, ".dockerignore", ".gitignore", "Dockerfile", "Makefile", "README.md", "config/00-namespace.yaml", "config/certificate.yaml",
		"config/deployment.yaml", "config/networkpolicy.yaml", "config/zz-extensionconfig.yaml", "go.mod", "go.sum", "handlers.go",
		"handlers_test.go", "main.go", "metadata.yaml")
	slices.Sort(out)
	return out
}

func everyHook() []string {
	var out []string
	for _, h := range extensiontools.ExampleHooks() {
		if !h.Singleton {
			out = append(out, h.ID.Hook)
		}
	}
	return out
}

// RT-23: what is written is formatted, builds as it is, and passes its own tests, for the hooks that an author begins with and for all.
func TestWrittenProjectWorks(t *testing.T) {
	for name, tc := range map[string]struct {
		sdk   string
		hooks []string
		want  []string
	}{
		"SDK of the binary": {want: shipped("before_cluster_create.go", "before_cluster_create_test.go", "generate_patches.go", "generate_patches_test.go",
			"testdata/before-cluster-create.yaml", "testdata/generate-patches.yaml")},
		"SDK of a folder, all hooks": {sdk: "../../../sdk", hooks: everyHook()},
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "some", "where")
			files, err := scaffold.Write(scaffold.Options{Dir: dir, Name: "my-extension", Module: "example.com/my-extension", SDK: tc.sdk, Hooks: tc.hooks})
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(tc.want, files); d != "" && tc.want != nil {
				t.Errorf("(-want +got):\n%s", d)
			}
			for _, h := range tc.hooks {
				if !slices.Contains(files, "testdata/"+extensiontools.FileName(h)+".yaml") {
					t.Errorf("there is no request of %s", h)
				}
			}
			_, err = os.Stat(filepath.Join(dir, "third_party"))
			if (err == nil) != (tc.sdk == "") {
				t.Errorf("third_party: %v", err)
			}
			for _, command := range [][]string{{"gofmt", "-l", "."}, {"go", "vet", "./..."}, {"go", "test", "-count=1", "./..."}} {
				if out, err := run(t, dir, command...); err != nil || command[0] == "gofmt" && out != "" {
					t.Errorf("%s: %v\n%s", strings.Join(command, " "), err, out)
				}
			}
		})
	}
}

// run runs a command in a folder.
func run(t *testing.T, dir string, command ...string) (string, error) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), command[0], command[1:]...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOFLAGS=-mod=readonly", "GOWORK=off")
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// RT-23: what a project ships is a release that clusterctl's contract is content with, of objects that API servers know.
func TestWrittenProjectShips(t *testing.T) {
	dir := t.TempDir()
	if _, err := scaffold.Write(scaffold.Options{Dir: filepath.Join(dir, "p"), Name: "my-extension", Module: "example.com/p"}); err != nil {
		t.Fatal(err)
	}
	if out, err := run(t, filepath.Join(dir, "p"), "make", "release", "VERSION=v0.1.7", "IMAGE=registry.example.com/team/x:v0.1.7"); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	releases, findings, err := lint.Dir(filepath.Join(dir, "p", "dist"))
	if err != nil || releases != 1 || len(findings) != 0 {
		t.Errorf("%d releases, %v: %+v", releases, err, findings)
	}
	data, err := os.ReadFile(filepath.Join(dir, "p", "dist", "runtime-extension-my-extension", "v0.1.7", "runtime-extension-components.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	kinds := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(kinds), runtimev1.AddToScheme(kinds)); err != nil {
		t.Fatal(err)
	}
	strict := serializer.NewCodecFactory(kinds, serializer.EnableStrict).UniversalDeserializer()
	var got []string
	for document := range strings.SplitSeq(string(data), "\n---\n") {
		object, kind, err := strict.Decode([]byte(document), nil, nil)
		if err != nil && !strings.Contains(document, "apiVersion: cert-manager.io/v1") {
			t.Errorf("%v in\n%s", err, document)
		}
		if d, ok := object.(*appsv1.Deployment); ok {
			if *d.Spec.Replicas != 2 || d.Spec.Template.Spec.Containers[0].Image != "registry.example.com/team/x:v0.1.7" {
				t.Errorf("got %+v", d.Spec)
			}
		}
		if err == nil {
			got = append(got, kind.Kind)
		}
	}
	want := []string{"Namespace", "ServiceAccount", "Deployment", "PodDisruptionBudget", "Service", "NetworkPolicy", "ExtensionConfig"}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

// RT-23: an update of the SDK leaves a project as a new one has it, the author's own requirements and files untouched, and may be
// repeated.
func TestUpdate(t *testing.T) {
	dir := t.TempDir()
	if _, err := scaffold.Write(scaffold.Options{Dir: filepath.Join(dir, "p"), Name: "a", Module: "example.com/a"}); err != nil {
		t.Fatal(err)
	}
	at := func(name string) string { return filepath.Join(dir, "p", filepath.FromSlash(name)) }
	read := func(name string) string {
		t.Helper()
		data, err := os.ReadFile(at(name))
		if err != nil {
			t.Fatal(err)
		}
		return string(data)
	}
	write := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(at(name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	fresh := map[string]string{}
	for _, name := range []string{"go.sum", "third_party/slipway-sdk/extension/doc.go", "third_party/slipway-sdk/hooks/id.go"} {
		fresh[name] = read(name)
	}
	version := regexp.MustCompile(`(sigs.k8s.io/cluster-api/api|github.com/go-logr/logr) v\S+`)
	mod := read("go.mod")
	newest := version.FindAllString(mod, -1)
	older := strings.Replace(version.ReplaceAllString(mod, "$1 v1.0.0"), "gomodules.xyz/jsonpatch/v2 v2.4.0", "gomodules.xyz/jsonpatch/v2 v2.99.0", 1)
	older = regexp.MustCompile(`(?m)^.*github.com/gobuffalo/flect.*\n`).ReplaceAllString(older, "")
	write("go.mod", strings.Replace(older, "go 1.26.0", "go 1.25.0", 1))
	write("go.sum", "example.com/mine v1.0.0 h1:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=\n")
	write("third_party/slipway-sdk/extension/doc.go", "package extension // old")
	write("third_party/slipway-sdk/extension/gone.go", "package extension")
	write("handlers.go", "package main // mine")
	if err := os.Remove(at("third_party/slipway-sdk/hooks/id.go")); err != nil {
		t.Fatal(err)
	}
	u, err := scaffold.Update(filepath.Join(dir, "p"))
	if err != nil || u.Added != 1 || u.Changed != 1 || u.Removed != 1 {
		t.Errorf("got %+v, %v", u, err)
	}
	slices.Sort(newest)
	if d := cmp.Diff(append(newest, "github.com/gobuffalo/flect v1.0.3", "go 1.26.0"), u.Modules, cmpopts.SortSlices(strings.Compare)); d != "" {
		t.Errorf("modules (-want +got):\n%s", d)
	}
	for name, want := range fresh {
		if got := read(name); got != want && name != "go.sum" {
			t.Errorf("%s is not that of the binary", name)
		}
	}
	if sums := read("go.sum"); !strings.Contains(sums, "example.com/mine") || strings.Count(sums, "\n") != strings.Count(fresh["go.sum"], "\n")+1 {
		t.Error("go.sum is not the sums of both")
	}
	if _, err := os.Stat(at("third_party/slipway-sdk/extension/gone.go")); err == nil {
		t.Error("a file that the SDK does not have any more is still there")
	}
	if got := read("go.mod"); !strings.Contains(got, "gomodules.xyz/jsonpatch/v2 v2.99.0") || !strings.Contains(got, "go 1.26.0") {
		t.Errorf("what is newer stays, what is older is raised:\n%s", got)
	}
	if read("handlers.go") != "package main // mine" {
		t.Error("the author's file was changed")
	}
	if u, err = scaffold.Update(filepath.Join(dir, "p")); err != nil || !u.IsEmpty() {
		t.Errorf("the second time: %+v, %v", u, err)
	}
}

func TestUpdateRefuses(t *testing.T) {
	dir := t.TempDir()
	if _, err := scaffold.Update(dir); fault.KindOf(err) != fault.Invalid || !strings.Contains(err.Error(), "has no go.mod") {
		t.Errorf("no project: %v", err)
	}
	for text, want := range map[string]string{
		"module x\n": "does not build with the SDK in third_party/slipway-sdk",
		"{":          "go.mod cannot be read",
	} {
		if err := os.WriteFile(filepath.Join(dir, "go.mod"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := scaffold.Update(dir); fault.KindOf(err) != fault.Invalid || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func TestWriteRefuses(t *testing.T) {
	full := t.TempDir()
	if err := os.WriteFile(filepath.Join(full, "mine"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	good := scaffold.Options{Dir: filepath.Join(full, "new"), Name: "a", Module: "example.com/a"}
	cases := map[string]struct {
		reason string
		change func(*scaffold.Options)
		want   string
	}{
		"name":   {"it names an ExtensionConfig", func(o *scaffold.Options) { o.Name = "My Extension" }, `"My Extension"`},
		"module": {"go would refuse it", func(o *scaffold.Options) { o.Module = "a b" }, "module path"},
		"full":   {"nothing of the user's is overwritten", func(o *scaffold.Options) { o.Dir = full }, "not empty"},
		"file":   {"a file is no folder", func(o *scaffold.Options) { o.Dir = filepath.Join(full, "mine") }, "cannot be used"},
		"hook":   {"there is no such hook", func(o *scaffold.Options) { o.Hooks = []string{"BeforeLunch"} }, "BeforeClusterCreate"},
		"served": {"the SDK answers it", func(o *scaffold.Options) { o.Hooks = []string{"Discovery"} }, "answered by the SDK"},
		"sdk":    {"there is nothing to build with", func(o *scaffold.Options) { o.SDK = full }, "no go.mod"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			o := good
			tc.change(&o)
			_, err := scaffold.Write(o)
			if fault.KindOf(err) != fault.Invalid || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%s: got %v, want %q", tc.reason, err, tc.want)
			}
			if _, err := os.Stat(good.Dir); err == nil {
				t.Error("something was written")
			}
		})
	}
}
