package slipway

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const module = "github.com/slipwayhq/slipway/"

// source is one parsed Go file.
type source struct {
	path string // relative to the root
	dir  string
	file *ast.File
	fset *token.FileSet
}

func (s source) isTest() bool { return strings.HasSuffix(s.path, "_test.go") }

func (s source) lines() int { return s.fset.File(s.file.Pos()).LineCount() }

func sources(t *testing.T) []source {
	t.Helper()
	var out []source
	err := filepath.WalkDir(".", func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && (strings.HasPrefix(d.Name(), ".") && p != "." || slices.Contains([]string{"bin", "dist", "testdata"}, d.Name())) {
			return filepath.SkipDir
		}
		if d.IsDir() || !strings.HasSuffix(p, ".go") || strings.HasPrefix(d.Name(), "zz_generated") {
			return nil
		}
		fset := token.NewFileSet()
		f, err := parser.ParseFile(fset, p, nil, parser.ParseComments)
		if err != nil {
			return err
		}
		out = append(out, source{path: p, dir: path.Dir(p), file: f, fset: fset})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func imports(s source) []string {
	var out []string
	for _, i := range s.file.Imports {
		p, err := strconv.Unquote(i.Path.Value)
		if err == nil {
			out = append(out, p)
		}
	}
	return out
}

// layers from the bottom to the top. A package may import packages of its own layer and of lower layers.
var layers = [][]string{
	// values
	{
		"internal/fault", "internal/condition", "internal/version", "internal/naming", "internal/buildinfo", "internal/heap",
		"internal/manifest", "internal/pause", "internal/redact", "internal/providerset", "internal/reconciler/pacing", "internal/local/subnet",
		"internal/controlplane/componentconfig", "internal/controlplane/datadir", "internal/controlplane/uidisolation", "internal/controlplane/pki",
		"sdk", "api",
	},
	// computations
	{
		"internal/topology", "internal/rollout", "internal/admission", "internal/conversion", "internal/crdschema",
		"internal/reconciler/ownership", "internal/policy", "internal/snapshots", "internal/jobs", "internal/kubeadm/recovery",
	},
	// access to the API, workload clusters and extensions
	{
		"internal/kube", "internal/reconciler", "internal/machines", "internal/reference", "internal/workload",
		"internal/controllers/machine/drain", "internal/hook", "internal/plan", "internal/kubeadm/secrets", "internal/kubeadm/etcd", "internal/infrastructure",
	},
	// controllers, providers and control planes
	{
		"internal/controllers", "internal/kubeadm", "internal/hosted", "internal/local", "internal/ssh", "internal/bundle", "internal/controlplane", "internal/simulated",
		"internal/nodeimage", "config", "images", "examples", "docs",
	},
	// programs
	{"internal/manager", "internal/managementnode", "internal/clusterctl", "internal/operate", "internal/rootcause", "internal/fleet", "internal/ui", "internal/extensiontools", "internal/release"},
	{"internal/cli"},
	{"cmd", "test", "hack"},
}

func layerOf(dir string) int {
	for n, prefixes := range layers {
		for _, p := range prefixes {
			if dir == p || strings.HasPrefix(dir, p+"/") {
				return n
			}
		}
	}
	return -1
}

// TestImportsPointDown checks that packages import packages of their own and lower layers only.
func TestImportsPointDown(t *testing.T) {
	for _, s := range sources(t) {
		if s.isTest() || s.dir == "." || strings.HasPrefix(s.dir, "hack/") {
			continue
		}
		own := layerOf(s.dir)
		if own < 0 {
			t.Errorf("%s: the package is in no layer: add it to layers in arch_test.go", s.path)
			continue
		}
		for _, p := range imports(s) {
			dir, ours := strings.CutPrefix(p, module)
			if ours && layerOf(dir) > own {
				t.Errorf("%s imports %s, which is in a higher layer", s.path, dir)
			}
		}
	}
}

// TestControllersDoNotImportEachOther checks that controllers interact through the API only.
func TestControllersDoNotImportEachOther(t *testing.T) {
	kind := regexp.MustCompile(`^internal/controllers/([^/]+)`)
	for _, s := range sources(t) {
		own := kind.FindStringSubmatch(s.dir)
		if own == nil {
			continue
		}
		for _, p := range imports(s) {
			other := kind.FindStringSubmatch(strings.TrimPrefix(p, module))
			if other != nil && other[1] != own[1] {
				t.Errorf("%s imports controller %s: controllers must not import each other", s.path, other[1])
			}
		}
	}
}

// TestNoForeignCore checks that only the API module of Cluster API is imported, and no server code in the SDK.
func TestNoForeignCore(t *testing.T) {
	for _, s := range sources(t) {
		if strings.HasPrefix(s.dir, "test/interop") {
			continue
		}
		for _, p := range imports(s) {
			if strings.HasPrefix(p, "sigs.k8s.io/cluster-api/") && !strings.HasPrefix(p, "sigs.k8s.io/cluster-api/api/") {
				t.Errorf("%s imports %s: only the module sigs.k8s.io/cluster-api/api may be imported", s.path, p)
			}
			if strings.HasPrefix(s.dir, "sdk") && strings.HasPrefix(p, "k8s.io/kubernetes") {
				t.Errorf("%s imports server code, %s: the SDK must not depend on it", s.path, p)
			}
		}
	}
}

// TestGroupsRecoverPanics: goroutines of a reconciliation are started with fault.Group, because a panic on another goroutine
// than the reconciliation's own ends the manager.
func TestGroupsRecoverPanics(t *testing.T) {
	for _, s := range sources(t) {
		if !s.isTest() && strings.HasPrefix(s.dir, "internal/") && s.dir != "internal/fault" && slices.Contains(imports(s), "golang.org/x/sync/errgroup") {
			t.Errorf("%s imports errgroup: use fault.Group", s.path)
		}
	}
}

// TestPackageNames rejects package names that do not describe the content of the package.
func TestPackageNames(t *testing.T) {
	banned := []string{"util", "utils", "common", "helper", "helpers", "misc", "shared", "base", "lib", "types", "exp"}
	for _, s := range sources(t) {
		if slices.Contains(banned, s.file.Name.Name) {
			t.Errorf("%s: name the package after a concept of the domain, not %q", s.path, s.file.Name.Name)
		}
	}
}

// TestPackagesAreDocumented checks that each package has a package comment.
func TestPackagesAreDocumented(t *testing.T) {
	documented := map[string]bool{}
	for _, s := range sources(t) {
		if s.isTest() || s.file.Name.Name == "main" {
			continue
		}
		documented[s.dir] = documented[s.dir] || s.file.Doc != nil
	}
	for dir, ok := range documented {
		if !ok {
			t.Errorf("%s has no package comment", dir)
		}
	}
}

// TestNoInit rejects init functions, whose effects depend on the import graph.
func TestNoInit(t *testing.T) {
	for _, s := range sources(t) {
		for _, d := range s.file.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && f.Recv == nil && f.Name.Name == "init" {
				t.Errorf("%s: init functions are not allowed", s.fset.Position(f.Pos()))
			}
		}
	}
}

// TestSizes checks the limits for the lines of a file, the lines of a function, and its parameters besides the context.
func TestSizes(t *testing.T) {
	const file, function, parameters = 500, 100, 4
	foreign := map[string]string{"internal/controlplane/tenantlimits.go": "Handle"} // methods of interfaces in other modules
	for _, s := range sources(t) {
		if s.isTest() {
			continue
		}
		if n := s.lines(); n > file {
			t.Errorf("%s has %d lines, at most %d", s.path, n, file)
		}
		for _, d := range s.file.Decls {
			f, ok := d.(*ast.FuncDecl)
			if !ok {
				continue
			}
			if n := s.fset.Position(f.End()).Line - s.fset.Position(f.Pos()).Line + 1; n > function {
				t.Errorf("%s: %s has %d lines, at most %d", s.fset.Position(f.Pos()), f.Name.Name, n, function)
			}
			if n := countParameters(f); n > parameters && foreign[s.path] != f.Name.Name {
				t.Errorf("%s: %s has %d parameters besides the context, at most %d", s.fset.Position(f.Pos()), f.Name.Name, n, parameters)
			}
		}
	}
}

func countParameters(f *ast.FuncDecl) int {
	n := 0
	for _, p := range f.Type.Params.List {
		if sel, ok := p.Type.(*ast.SelectorExpr); ok && sel.Sel.Name == "Context" {
			continue
		}
		n += max(1, len(p.Names))
	}
	return n
}

// TestVersionsAgree checks that both go.mod files require the same version of the modules that must be updated together.
func TestVersionsAgree(t *testing.T) {
	root, err := os.ReadFile("go.mod")
	if err != nil {
		t.Fatal(err)
	}
	sdk, err := os.ReadFile("sdk/go.mod")
	if err != nil {
		t.Fatal(err)
	}
	want := regexp.MustCompile(`k8s\.io/kubernetes v1\.(\d+\.\d+)`).FindSubmatch(root)
	if want == nil {
		t.Fatal("go.mod does not require k8s.io/kubernetes")
	}
	staging := "v0." + string(want[1])
	for _, m := range regexp.MustCompile(`(?m)=> (k8s\.io/\S+) (\S+)$`).FindAllSubmatch(root, -1) {
		if string(m[2]) != staging {
			t.Errorf("%s is %s, want %s", m[1], m[2], staging)
		}
	}
	for _, m := range regexp.MustCompile(`(?m)^\t(k8s\.io/(?:api|apimachinery|client-go|apiextensions-apiserver)|sigs\.k8s\.io/cluster-api/api) (\S+)`).FindAllSubmatch(sdk, -1) {
		if bytes.HasPrefix(m[1], []byte("k8s.io/")) && string(m[2]) != staging {
			t.Errorf("sdk: %s is %s, want %s", m[1], m[2], staging)
		}
		if !bytes.HasPrefix(m[1], []byte("k8s.io/")) && !bytes.Contains(root, append(append([]byte("\t"), m[1]...), append([]byte(" "), m[2]...)...)) {
			t.Errorf("sdk: %s %s is not the version in go.mod", m[1], m[2])
		}
	}
}

// TestCommandsOfGoRunInOwnFolders checks that only package nodeimage runs Go commands. Go reads the go.mod in its working
// directory and in all parent directories, so package nodeimage runs it in directories that no other user can write.
// Security S9.
func TestCommandsOfGoRunInOwnFolders(t *testing.T) {
	for _, s := range sources(t) {
		tool := s.file.Name.Name == "main" && !strings.HasPrefix(s.dir, "cmd/")
		if s.isTest() || tool || layerOf(s.dir) == len(layers)-1 || strings.HasPrefix(s.dir, "hack/") { // tools run where the source is
			continue
		}
		ast.Inspect(s.file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.KeyValueExpr:
				key, isField := n.Key.(*ast.Ident)
				call, isCall := n.Value.(*ast.CallExpr)
				if isField && isCall && key.Name == "Dir" && called(call) == "os.TempDir" {
					t.Errorf("%s: the command runs in the directory for temporary files, where other users can write", s.fset.Position(n.Pos()))
				}
			case *ast.CallExpr:
				if strings.HasPrefix(called(n), "exec.Command") && slices.ContainsFunc(n.Args, isGo) {
					t.Errorf("%s: run Go with package nodeimage", s.fset.Position(n.Pos()))
				}
			case *ast.CompositeLit:
				if list, ok := n.Type.(*ast.ArrayType); ok && s.dir != "internal/nodeimage" && fmt.Sprint(list.Elt) == "string" && len(n.Elts) > 1 && isGo(n.Elts[0]) {
					t.Errorf("%s: run Go with a Toolchain of package nodeimage", s.fset.Position(n.Pos()))
				}
			}
			return true
		})
	}
}

func isGo(e ast.Expr) bool {
	literal, ok := e.(*ast.BasicLit)
	return ok && literal.Value == `"go"`
}

// called returns the function of a call with its package name, or an empty string if it is not a function of a package.
func called(call *ast.CallExpr) string {
	selector, ok := call.Fun.(*ast.SelectorExpr)
	if !ok {
		return ""
	}
	pkg, ok := selector.X.(*ast.Ident)
	if !ok {
		return ""
	}
	return pkg.Name + "." + selector.Sel.Name
}
