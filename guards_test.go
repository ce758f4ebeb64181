package slipway

import (
	"fmt"
	"go/types"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"golang.org/x/tools/go/packages"
)

// call is one use of a function or method in production code.
type call struct {
	at string // file:line, relative to the root
	// dir of the file, relative to the root.
	dir string
	// pkg and name of the function; the name of a method is Receiver.Method.
	pkg, name string
}

func (c call) String() string { return fmt.Sprintf("%s: %s.%s", c.at, c.pkg, c.name) }

// loadOnce loads the production code with type information, without tests.
var loadOnce = sync.OnceValues(func() ([]*packages.Package, error) {
	return packages.Load(&packages.Config{
		Mode:       packages.NeedName | packages.NeedFiles | packages.NeedSyntax | packages.NeedTypes | packages.NeedTypesInfo | packages.NeedImports,
		BuildFlags: []string{"-pgo=off"},
	}, "./api/...", "./cmd/...", "./config/...", "./images/...", "./internal/...")
})

func load(t *testing.T) []*packages.Package {
	t.Helper()
	loaded, err := loadOnce()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range loaded {
		for _, e := range p.Errors {
			t.Fatalf("%s: %v", p.PkgPath, e)
		}
	}
	return loaded
}

// calls returns every use of functions and methods in production code. It relies on type information, so that an import
// under another name, a wrapper type or a method value does not hide a use.
func calls(t *testing.T) []call {
	t.Helper()
	root, err := filepath.Abs(".")
	if err != nil {
		t.Fatal(err)
	}
	var out []call
	for _, p := range load(t) {
		for id, used := range p.TypesInfo.Uses {
			f, ok := used.(*types.Func)
			if !ok || f.Pkg() == nil {
				continue
			}
			at := p.Fset.Position(id.Pos())
			rel, err := filepath.Rel(root, at.Filename)
			if err != nil {
				t.Fatal(err)
			}
			out = append(out, call{at: fmt.Sprintf("%s:%d", rel, at.Line), dir: filepath.Dir(rel), pkg: f.Pkg().Path(), name: nameOf(f)})
		}
	}
	if len(out) < 10000 {
		t.Fatalf("found only %d calls: the guards would check nothing", len(out))
	}
	slices.SortFunc(out, func(a, b call) int { return strings.Compare(a.at, b.at) })
	return out
}

func nameOf(f *types.Func) string {
	receiver := f.Signature().Recv()
	if receiver == nil {
		return f.Name()
	}
	of := receiver.Type()
	if p, ok := of.(*types.Pointer); ok {
		of = p.Elem()
	}
	if n, ok := of.(*types.Named); ok {
		return n.Obj().Name() + "." + f.Name()
	}
	return "." + f.Name() // method of an unnamed interface
}

// allowed holds the folders and files in which a guarded function may be used, each with the reason.
type allowed map[string]string

// covers reports whether the call's file or one of its folders is allowed.
func (a allowed) covers(c call) bool {
	file, _, _ := strings.Cut(c.at, ":")
	for at := file; at != "."; at = filepath.Dir(at) {
		if _, ok := a[at]; ok {
			return true
		}
	}
	return false
}

// check reports guarded calls in other places, and exceptions that are not needed. instead describes the correction.
func (a allowed) check(t *testing.T, guarded []call, instead string) {
	t.Helper()
	if len(guarded) == 0 {
		t.Error("found no call to guard: the guarded functions have other names")
	}
	for _, c := range guarded {
		if !a.covers(c) {
			t.Errorf("%s: %s", c, instead)
		}
	}
	for place := range a {
		one := allowed{place: ""}
		if !slices.ContainsFunc(guarded, one.covers) {
			t.Errorf("the exception %s (%s) is not needed: remove it", place, a[place])
		}
	}
}

func only(all []call, guarded func(call) bool) []call {
	return slices.DeleteFunc(slices.Clone(all), func(c call) bool { return !guarded(c) })
}

// TestGuards checks rules about calls of other modules that were violated in the past.
func TestGuards(t *testing.T) {
	all := calls(t)
	t.Run("kubeconfigs are parsed in one place", func(t *testing.T) { guardKubeconfigs(t, all) })
	t.Run("controllers write through internal/kube", func(t *testing.T) { guardWrites(t, all) })
	t.Run("Docker objects are identified by their labels", func(t *testing.T) { guardDocker(t, all) })
}

// TestCachesAreGuarded checks that hack/test.sh, which CI runs, detects modifications of cached objects.
func TestCachesAreGuarded(t *testing.T) {
	script, err := os.ReadFile("hack/test.sh")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(script), "export KUBE_CACHE_MUTATION_DETECTOR=true\n") {
		t.Error("hack/test.sh does not enable the cache mutation detector")
	}
}

// TestBrowserTests checks that hack/test.sh runs two tests in a browser that exist, and the others of their package in no
// other way.
func TestBrowserTests(t *testing.T) {
	script, err := os.ReadFile("hack/test.sh")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(script), ` -e '/test/browser$')`) {
		t.Error("hack/test.sh does not exclude exactly the package test/browser")
	}
	line := regexp.MustCompile(`SLIPWAY_BROWSER=1 .* -run '\^\((\w+)\|(\w+)\)\$' \./test/browser`).FindStringSubmatch(string(script))
	if line == nil {
		t.Fatal("hack/test.sh does not run two tests in a browser")
	}
	files, err := filepath.Glob("test/browser/*_test.go")
	if err != nil {
		t.Fatal(err)
	}
	var all []byte
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, text...)
	}
	for _, name := range line[1:] {
		if !strings.Contains(string(all), "\nfunc "+name+"(t *testing.T) {") {
			t.Errorf("hack/test.sh runs %s, which does not exist in test/browser", name)
		}
	}
}

// TestFuzzTargetsHaveACorpus checks that each fuzz target of both modules has a committed corpus. In an ordinary test run,
// a fuzz target only runs its corpus and the inputs that it adds itself.
func TestFuzzTargetsHaveACorpus(t *testing.T) {
	target, found := regexp.MustCompile(`(?m)^func (Fuzz\w+)\(`), 0
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		for _, match := range target.FindAllSubmatch(text, -1) {
			found++
			inputs, err := filepath.Glob(filepath.Join(filepath.Dir(path), "testdata", "fuzz", string(match[1]), "*"))
			if err != nil || len(inputs) == 0 {
				t.Errorf("%s: %s has no corpus in testdata/fuzz: %v", path, match[1], err)
			}
		}
		return nil
	})
	if err != nil || found == 0 {
		t.Errorf("found %d fuzz targets: %v", found, err)
	}
}

// guardKubeconfigs checks that kubeconfigs of tenants are parsed by package workload only. They can name commands, plugins
// and files, which client-go would run and read with the permissions of the manager.
func guardKubeconfigs(t *testing.T, all []call) {
	const clientcmd = "k8s.io/client-go/tools/clientcmd"
	harmless := []string{"Write", "WriteToFile", "ClientConfig.Namespace", "ClientConfig.RawConfig"}
	allowed{
		"internal/workload":                "the parser of kubeconfigs that tenants wrote",
		"internal/hosted/addons":           "the kubeconfig in ConfigMap cluster-info, which this program generates",
		"internal/cli/management":          "the kubeconfig of the user who runs the command",
		"internal/cli/cluster":             "the kubeconfig of the user who runs the command, and entries added to it, which were checked when they were read",
		"internal/cli/manager/manager.go":  "the kubeconfig that the operator names on the command line",
		"internal/cli/manager/embedded.go": "written by this program, in its data directory",
	}.check(t, only(all, func(c call) bool { return c.pkg == clientcmd && !slices.Contains(harmless, c.name) }),
		"use the parser of package workload, which rejects commands, plugins and files")
}

// guardWrites checks that controllers write through package kube. Its Writer makes the version that was read a
// precondition of deletions, sets the field manager, skips writes that change nothing, and counts writes.
func guardWrites(t *testing.T, all []call) {
	verbs := []string{"Create", "Update", "UpdateStatus", "Patch", "Apply", "ApplyStatus", "Delete", "DeleteAllOf", "DeleteCollection"}
	writes := func(c call) bool {
		receiver, verb, _ := strings.Cut(c.name, ".")
		switch {
		case !slices.Contains(verbs, verb):
			return false
		case c.pkg == "sigs.k8s.io/controller-runtime/pkg/client":
			return receiver == "Writer" || receiver == "SubResourceWriter" || receiver == "Client"
		}
		return strings.HasPrefix(c.pkg, "k8s.io/client-go/kubernetes/typed/") || c.pkg == "k8s.io/client-go/dynamic"
	}
	allowed{
		"internal/kube": "implements the Writer",
		"internal/controllers/credentials/controller.go":     "creates access reviews, which the API server does not store",
		"internal/controllers/machine/drain/evict.go":        "creates evictions, which are requests to a workload cluster and not objects",
		"internal/manager/install.go":                        "installs the manager's own manifests, before any controller runs",
		"internal/manager/crds/migration.go":                 "rewrites stored objects without changing them",
		"internal/manager/planhandler.go":                    "creates access reviews, which the API server does not store",
		"internal/controlplane/secretencryption/rewriter.go": "rewrites stored Secrets without changing them",
		"internal/controlplane/roles.go":                     "creates the default roles of a new API server",
		"internal/controlplane/fairness.go":                  "exempts the manager from flow control before it starts",
		"internal/controlplane/tenantpolicies.go":            "creates the policies of a new API server",
		"internal/controlplane/components/admins.go":         "binds the administrators of a new API server",
		"internal/local/simulated":                           "simulates kubelets in an API in memory",
		"internal/simulated":                                 "simulates the components of a workload cluster in an API in memory",
		"internal/controllers/clusterresourceset/apply.go":   "applies manifests of users to workload clusters",
		"internal/cli/management/manager.go":                 "sends dry runs, which store nothing",
		"internal/cli/manager/authority.go":                  "creates access reviews, which the API server does not store",
		"internal/extensiontools":                            "writes on behalf of the user who runs the command",
		"internal/operate/kubeconfig":                        "writes on behalf of the user who runs the command, in a workload cluster",
		"internal/plan/change.go":                            "simulates kubectl on a copy in memory",
	}.check(t, only(all, writes), "write through internal/kube")
}

// guardDocker checks that no name in a spec or status, which a tenant may have written, reaches Docker. Existing objects
// are found and their labels are checked in identify.go; other code uses the IDs that it returns.
func guardDocker(t *testing.T, all []call) {
	reads := []string{"List", "Events", "Info", "Ping", "DaemonHost", "Close", "ImageInspect"}
	acts := func(verb string) bool {
		return !slices.ContainsFunc(reads, func(r string) bool { return strings.HasSuffix(verb, r) })
	}
	verbs := func(guarded func(verb string) bool) []call {
		return only(all, func(c call) bool {
			receiver, verb, _ := strings.Cut(c.name, ".")
			onEngine := receiver == "Client" || strings.HasSuffix(receiver, "APIClient")
			return c.pkg == "github.com/moby/moby/client" && onEngine && acts(verb) && guarded(verb)
		})
	}
	creates := func(verb string) bool { return strings.HasSuffix(verb, "Create") && verb != "ExecCreate" }
	const backend = "internal/local/container/"
	allowed{
		backend + "machine.go": "containers of nodes",
		backend + "network.go": "networks of clusters",
	}.check(t, verbs(func(verb string) bool { return creates(verb) && !strings.HasPrefix(verb, "Image") }), "create containers and networks only in these files")
	allowed{
		backend + "identify.go": "finds objects, checks their labels, and uses the IDs that it found",
		backend + "exec.go":     "uses a container that identify.go found",
	}.check(t, verbs(func(verb string) bool { return !creates(verb) && !strings.HasPrefix(verb, "Image") }), "find the object with identify.go first")
}

// TestControllersUseTheClockOfTheirSetup checks that controllers read the time from [reconciler.Setup.Clock], which
// simulations replace.
func TestControllersUseTheClockOfTheirSetup(t *testing.T) {
	for _, c := range calls(t) {
		if strings.HasPrefix(c.dir, "internal/controllers") && c.pkg == "time" && c.name == "Now" {
			t.Errorf("%s: use Setup.Clock", c)
		}
	}
}
