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

// call is one place in the product's code where a function or method of a package that is not ours is used.
type call struct {
	at string // file:line, relative to the root
	// dir of the file, relative to the root.
	dir string
	// pkg and name of what is used; for a method the name is Receiver.Method.
	pkg, name string
}

func (c call) String() string { return fmt.Sprintf("%s: %s.%s", c.at, c.pkg, c.name) }

// loadOnce loads the product's code with the types that the compiler sees, without tests.
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

// calls returns every use of functions and methods in the product's code, with the types that the compiler sees: an
// import under another name, a wrapper type or a method value does not hide one. Tests are not looked at.
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
		t.Fatalf("only %d calls found: the guards look at nothing", len(out))
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
	return "." + f.Name() // of an interface without a name
}

// allowed are the folders and files in which something guarded may be used, each with the reason.
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

// check reports guarded calls elsewhere, and exceptions that nothing needs any more.
func (a allowed) check(t *testing.T, guarded []call, instead string) {
	t.Helper()
	if len(guarded) == 0 {
		t.Error("nothing is guarded: what the guard looks for has another name")
	}
	for _, c := range guarded {
		if !a.covers(c) {
			t.Errorf("%s: %s", c, instead)
		}
	}
	for place := range a {
		one := allowed{place: ""}
		if !slices.ContainsFunc(guarded, one.covers) {
			t.Errorf("%s is an exception (%s) that nothing needs", place, a[place])
		}
	}
}

func only(all []call, guarded func(call) bool) []call {
	return slices.DeleteFunc(slices.Clone(all), func(c call) bool { return !guarded(c) })
}

// TestGuards: what the reviews found once cannot come back elsewhere.
func TestGuards(t *testing.T) {
	all := calls(t)
	t.Run("kubeconfigs are parsed in one place", func(t *testing.T) { guardKubeconfigs(t, all) })
	t.Run("controllers write through internal/kube", func(t *testing.T) { guardWrites(t, all) })
	t.Run("what is on the host is identified by its labels", func(t *testing.T) { guardDocker(t, all) })
}

// TestCachesAreGuarded: the tests of hack/test.sh, which is what CI runs, notice changes of what is in caches.
func TestCachesAreGuarded(t *testing.T) {
	script, err := os.ReadFile("hack/test.sh")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(script), "export KUBE_CACHE_MUTATION_DETECTOR=true\n") {
		t.Error("hack/test.sh does not turn the detector of changed caches on")
	}
}

// TestFuzzTargetsHaveACorpus: a fuzz target of either module without inputs that are committed tries what it begins with, and
// nothing else, wherever no one fuzzes.
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
		t.Errorf("%d fuzz targets, %v", found, err)
	}
}

// guardKubeconfigs: a kubeconfig that a tenant wrote can name commands, plugins and files, which client-go would run and
// read with the rights of the manager.
func guardKubeconfigs(t *testing.T, all []call) {
	const clientcmd = "k8s.io/client-go/tools/clientcmd"
	harmless := []string{"Write", "WriteToFile", "ClientConfig.Namespace", "ClientConfig.RawConfig"}
	allowed{
		"internal/workload":                "the one parser of kubeconfigs that we did not write",
		"internal/hosted/addons":           "what cluster-info shows, made of what this program knows",
		"internal/cli/management":          "the kubeconfig of the person who types the command",
		"internal/cli/cluster":             "the same, and what is added to it, which was checked when it was read",
		"internal/cli/manager/manager.go":  "the operator's, named on the command line",
		"internal/cli/manager/embedded.go": "written by this program, in its data directory",
		"internal/testkit/apiserver":       "written by the test",
	}.check(t, only(all, func(c call) bool { return c.pkg == clientcmd && !slices.Contains(harmless, c.name) }),
		"parse it with the one parser, which refuses commands, plugins and files")
}

// guardWrites: the writer binds deletions to what was read, names the field manager, writes nothing where nothing
// changes, and counts.
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
		"internal/kube": "the one place",
		"internal/controllers/credentials/controller.go":   "a review is a question to the API server, which stores nothing",
		"internal/controllers/machine/drain/evict.go":      "an eviction is a request that a workload cluster may refuse, not a change of an object",
		"internal/manager/install.go":                      "brings the manager's own manifests, before any controller runs",
		"internal/manager/migration":                       "rewrites stored objects without changing them",
		"internal/manager/serve.go":                        "a review is a question to the API server, which stores nothing",
		"internal/controlplane/secretencryption/keeper.go": "rewrites stored Secrets without changing them",
		"internal/controlplane/roles.go":                   "brings a new API server's default roles",
		"internal/controlplane/fairness.go":                "exempts the manager before it starts",
		"internal/controlplane/tenants/node.go":            "brings a new API server's policies",
		"internal/controlplane/components/admins.go":       "binds the administrators of a new API server",
		"internal/local/simulated":                         "plays a kubelet in the simulated API's memory",
		"internal/simulated":                               "plays the parts of a workload cluster in its own memory",
		"internal/controllers/clusterresourceset/apply.go": "applies manifests of people to workload clusters, with their kinds and verbs",
		"internal/cli/management/manager.go":               "a dry run, which stores nothing",
		"internal/cli/manager/authority.go":                "a review is a question to the API server, which stores nothing",
		"internal/extensiontools":                          "writes for the person who types the command",
		"internal/operate/kubeconfig":                      "writes for the person who types the command, in a workload cluster",
		"internal/testkit":                                 "tests",
		"internal/plan/change.go":                          "plays kubectl on a copy in memory",
	}.check(t, only(all, writes), "write through internal/kube")
}

// guardDocker: a name that a tenant wrote into a spec or a status never reaches Docker. What exists is looked up and its
// labels are checked in identify.go; what acts takes the ID that was found there.
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
	}.check(t, verbs(func(verb string) bool { return creates(verb) && !strings.HasPrefix(verb, "Image") }), "nothing else is created on the host")
	allowed{
		backend + "identify.go": "looks up, checks labels, and acts by the ID that it found",
		backend + "exec.go":     "takes a container that identify.go found",
	}.check(t, verbs(func(verb string) bool { return !creates(verb) && !strings.HasPrefix(verb, "Image") }), "identify what it is about first (identify.go)")
}
