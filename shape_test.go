package slipway

import (
	"go/ast"
	"go/token"
	"go/types"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"golang.org/x/tools/go/packages"
)

// TestDocHeadings: the documentation of a package says what it does, what it leaves to others, and where to begin. What it
// owns it says where it owns something.
func TestDocHeadings(t *testing.T) {
	docs := map[string]string{}
	for _, s := range sources(t) {
		if !s.isTest() && s.file.Name.Name != "main" {
			docs[s.dir] += s.file.Doc.Text()
		}
	}
	for dir, doc := range docs {
		for _, heading := range []string{"Does", "Never", "Read first"} {
			if !regexp.MustCompile(`(?m)^(# )?` + heading + `\b`).MatchString(doc) {
				t.Errorf("%s: the package's documentation has no %q", dir, heading)
			}
		}
		if strings.Contains(doc, "Owns: nothing") {
			t.Errorf("%s: the package's documentation says that it owns nothing: leave that out", dir)
		}
	}
}

// TestUnstructured: what has a Go type is read and written with it. Objects without one are those of providers, of people, and
// of tests.
func TestUnstructured(t *testing.T) {
	allowed := map[string]string{
		"config/rbac":                             "manifests",
		"internal/cli/create/cluster":             "manifests of people",
		"internal/machines/clone":                 "templates of providers",
		"internal/clusterctl/creation":            "manifests of people",
		"internal/clusterctl/move/host":           "objects of a selection, of any kind",
		"internal/clusterctl/move/portable":       "objects of any kind",
		"internal/clusterctl/move/sides":          "objects of any kind",
		"internal/clusterctl/manifest":            "manifests of people",
		"internal/clusterctl/convert":             "manifests of people",
		"internal/clusterctl/template":            "manifests of people, and objects of releases",
		"internal/clusterctl/backup":              "objects of any kind",
		"internal/clusterctl/move":                "objects of any kind",
		"internal/clusterctl/move/check":          "objects of any kind",
		"internal/clusterctl/move/data":           "objects of a selection, of any kind",
		"internal/clusterctl/move/files":          "objects of any kind",
		"internal/clusterctl/move/graph":          "objects of any kind",
		"internal/clusterctl/component":           "objects of providers, of any kind",
		"internal/clusterctl/lint":                "objects of releases, of any kind",
		"internal/managementnode":                 "what is applied to an EndpointSlice: only the fields that it owns",
		"internal/clusterctl/installation":        "objects of providers, of any kind",
		"internal/clusterctl/providerupgrade":     "objects of providers, of any kind",
		"internal/clusterctl/inventory":           "the record of providers, which has no Go type in the API's module",
		"internal/clusterctl/certificates":        "kinds of cert-manager, of which only what is used has a Go type",
		"internal/clusterctl/class":               "templates of classes, and values of variables as people write them",
		"config/classes":                          "manifests that ship",
		"internal/clusterctl/progress":            "objects of providers",
		"internal/clusterctl/tree":                "objects of providers",
		"internal/controllers/clusterresourceset": "manifests of people",
		"internal/controllers/machine":            "remediation requests and other objects of providers that refer to a Machine",
		"internal/controllers/machinedeployment":  "what is applied to a MachineSet: only the fields that the controller owns",
		"internal/controllers/machinehealthcheck": "remediation requests of providers",
		"internal/controllers/topology":           "objects and templates of providers, and what is applied to them",
		"internal/topology":                       "objects and templates of providers",
		"internal/kube":                           "what is applied, and references to objects of providers",
		"internal/machines":                       "what is applied to a Machine: only the fields that the controller owns",
		"internal/manager/crds":                   "CRDs",
		"internal/manager/migration":              "objects of any kind, which are stored again as they are",
		"internal/manager/webhook":                "configurations of webhooks, as they are applied",
		"internal/membership":                     "watches on objects of providers",
		"internal/providers/kubeadm/bootstrap":    "owners of any kind",

		"internal/providers/kubeadm/controlplane/rollout": "what is applied to a new KubeadmConfig: only the fields that the controller owns",

		"internal/providers/kubeadm/controlplane/update": "objects of providers as they are and as they shall be",

		"internal/providers/hosted/backend/statefulset": "what is applied: only the fields that the backend owns",

		"internal/inplace":            "objects of providers in requests",
		"internal/release/component":  "manifests",
		"internal/release/template":   "manifests",
		"internal/relay":              "decodes objects into their Go types",
		"internal/testkit/apiserver":  "tests",
		"internal/testkit/kstatus":    "objects of any kind, as clients see them",
		"internal/topology/patch":     "templates of providers",
		"internal/cli/plan":           "manifests of people",
		"internal/whatif":             "copies of objects of any kind",
		"internal/whatif/input":       "manifests of people, and copies of objects of any kind",
		"internal/whatif/memory":      "an API for objects of any kind",
		"internal/whatif/played":      "objects of providers",
		"sdk/contract":                "views of objects of providers",
		"sdk/extension/extensiontest": "objects of any kind in requests",
		"sdk/extension/topology":      "templates of providers in requests",
	}
	used := map[string]bool{}
	for _, s := range sources(t) {
		for _, p := range imports(s) {
			if s.isTest() || !strings.HasPrefix(p, "k8s.io/apimachinery/pkg/apis/meta/v1/unstructured") {
				continue
			}
			used[s.dir] = true
			if _, ok := allowed[s.dir]; !ok && !strings.HasPrefix(s.dir, "test/") && !strings.HasPrefix(s.dir, "hack/") {
				t.Errorf("%s imports %s: use the kind's Go type, or add the package to the list with the reason", s.path, p)
			}
		}
	}
	for dir := range allowed {
		if !used[dir] {
			t.Errorf("%s uses no unstructured objects (any more): remove it from the list", dir)
		}
	}
}

// TestNoMutableVariables: no package variable is changed after it was initialized.
func TestNoMutableVariables(t *testing.T) {
	allowed := map[string]string{
		"internal/kube.parsedFieldSets": "a cache of decoded texts, on which nothing but speed depends",
	}
	changed := map[string]bool{}
	for _, p := range load(t) {
		for _, file := range p.Syntax {
			ast.Inspect(file, func(n ast.Node) bool {
				for _, v := range changes(p, n) {
					name, at := shortPath(v.Pkg().Path())+"."+v.Name(), p.Fset.Position(n.Pos())
					changed[name] = true
					if _, ok := allowed[name]; !ok {
						t.Errorf("%s/%s:%d changes package variable %s: pass a value", shortPath(p.PkgPath), filepath.Base(at.Filename), at.Line, name)
					}
				}
				return true
			})
		}
	}
	for name, why := range allowed {
		if !changed[name] { // so the test finds changes at all, too
			t.Errorf("%s (%s) is not changed: remove it from the exceptions", name, why)
		}
	}
}

// changes are the package variables that a node changes, or gives others the means to: by assignment, by taking its address,
// and by calling a method that may change it.
func changes(p *packages.Package, n ast.Node) []*types.Var {
	var out []*types.Var
	note := func(e ast.Expr) {
		if v := rootVariable(p, e); v != nil {
			out = append(out, v)
		}
	}
	switch n := n.(type) {
	case *ast.AssignStmt:
		if n.Tok != token.DEFINE {
			for _, e := range n.Lhs {
				note(e)
			}
		}
	case *ast.IncDecStmt:
		note(n.X)
	case *ast.UnaryExpr:
		if n.Op == token.AND {
			note(n.X)
		}
	case *ast.CallExpr:
		if id, ok := n.Fun.(*ast.Ident); ok && len(n.Args) > 0 && (id.Name == "delete" || id.Name == "clear" || id.Name == "copy") {
			note(n.Args[0])
		}
		if sel, ok := n.Fun.(*ast.SelectorExpr); ok {
			s := p.TypesInfo.Selections[sel]
			if s == nil || s.Kind() != types.MethodVal {
				break
			}
			_, byPointer := s.Obj().(*types.Func).Signature().Recv().Type().(*types.Pointer)
			if _, is := p.TypesInfo.TypeOf(sel.X).(*types.Pointer); byPointer && !is {
				note(sel.X)
			}
		}
	}
	return out
}

// rootVariable is the package variable of this module that an expression is, or is part of.
func rootVariable(p *packages.Package, e ast.Expr) *types.Var {
	for {
		switch x := e.(type) {
		case *ast.SelectorExpr:
			if v, ok := p.TypesInfo.Uses[x.Sel].(*types.Var); ok && isPackageVariable(v) {
				return v
			}
			e = x.X
		case *ast.IndexExpr:
			e = x.X
		case *ast.StarExpr:
			e = x.X
		case *ast.ParenExpr:
			e = x.X
		case *ast.SliceExpr:
			e = x.X
		case *ast.Ident:
			if v, ok := p.TypesInfo.Uses[x].(*types.Var); ok && isPackageVariable(v) {
				return v
			}
			return nil
		default:
			return nil
		}
	}
}

func isPackageVariable(v *types.Var) bool {
	return v.Pkg() != nil && strings.HasPrefix(v.Pkg().Path()+"/", module) && v.Parent() == v.Pkg().Scope()
}
