package slipway

import (
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"golang.org/x/tools/go/packages"
)

// code is a function or package variable of this module, with the objects that it uses and its impure statements.
type code struct {
	name   string
	uses   []types.Object
	impure []string
}

// graph returns all functions and package variables of this module.
func graph(loaded []*packages.Package) map[types.Object]*code {
	out := map[types.Object]*code{}
	for _, p := range loaded {
		for _, file := range p.Syntax {
			for _, decl := range file.Decls {
				switch d := decl.(type) {
				case *ast.FuncDecl:
					if d.Body != nil {
						out[p.TypesInfo.Defs[d.Name]] = read(p, d.Name.Name, d.Body)
					}
				case *ast.GenDecl:
					for _, spec := range d.Specs {
						if v, ok := spec.(*ast.ValueSpec); ok && d.Tok == token.VAR {
							for _, name := range v.Names {
								out[p.TypesInfo.Defs[name]] = read(p, name.Name, v)
							}
						}
					}
				}
			}
		}
	}
	return out
}

// read collects the objects and impure statements of a function or variable.
func read(p *packages.Package, name string, body ast.Node) *code {
	c := &code{name: p.Types.Name() + "." + name}
	found := func(n ast.Node, what string) {
		at := p.Fset.Position(n.Pos())
		c.impure = append(c.impure, fmt.Sprintf("%s/%s:%d: %s", shortPath(p.PkgPath), filepath.Base(at.Filename), at.Line, what))
	}
	ast.Inspect(body, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.GoStmt:
			found(n, "go statement")
		case *ast.SelectStmt:
			found(n, "select statement")
		case *ast.Ident:
			used := p.TypesInfo.Uses[n]
			if f, ok := used.(*types.Func); ok {
				used = f.Origin()
			}
			if used == nil || used.Pkg() == nil {
				break
			}
			if why := impureUse(used); why != "" {
				found(n, why)
			}
			c.uses = append(c.uses, used)
		}
		return true
	})
	return c
}

func shortPath(pkg string) string { return strings.TrimPrefix(pkg, module) }

// impureUse returns why a decision must not use an object, or an empty string if it may. Functions that take a context
// read or write. Functions of the packages below do so too, or return another result for each call.
func impureUse(used types.Object) string {
	f, ok := used.(*types.Func)
	if !ok {
		return ""
	}
	pkg := f.Pkg().Path()
	full := pkg + "." + nameOf(f)
	pureInNet := []string{"JoinHostPort", "SplitHostPort", "ParseIP", "ParseCIDR", "IP.String", "IP.To4", "IPNet.String", "IPNet.Contains", "Error.Timeout"}
	clock := []string{"Now", "Since", "Until", "Sleep", "After", "AfterFunc", "NewTimer", "NewTicker", "Tick"}
	impure := []string{"os", "net", "net/http", "math/rand", "math/rand/v2", "crypto/rand", "sync", "syscall", "os/exec", "log", "log/slog", "github.com/go-logr/logr"}
	switch {
	case pkg == "net" && slices.Contains(pureInNet, nameOf(f)):
		return ""
	case takesContext(f.Signature()):
		return full + " takes a context, so it reads or writes"
	case pkg == "time" && slices.Contains(clock, f.Name()) && f.Signature().Recv() == nil:
		return full + ": use the time in the snapshot"
	case slices.Contains(impure, pkg):
		return full + " is not pure"
	}
	return ""
}

func takesContext(s *types.Signature) bool {
	for v := range s.Params().Variables() {
		if v.Type().String() == "context.Context" {
			return true
		}
	}
	return false
}

// decisions returns the functions in the fields Decide and Report of every reconciler.Controller, with their names.
func decisions(loaded []*packages.Package) map[types.Object]string {
	out := map[types.Object]string{}
	for _, p := range loaded {
		if shortPath(p.PkgPath) == "internal/kubeadm/bootstrap" { // called through a value of the snapshot
			out[p.Types.Scope().Lookup("render")] = "bootstrap.render"
		}
		for _, file := range p.Syntax {
			ast.Inspect(file, func(n ast.Node) bool {
				lit, ok := n.(*ast.CompositeLit)
				if !ok || !strings.HasPrefix(typeName(p, lit), module+"internal/reconciler.Controller[") {
					return true
				}
				for _, e := range lit.Elts {
					kv, ok := e.(*ast.KeyValueExpr)
					if !ok {
						continue
					}
					key, value := kv.Key.(*ast.Ident).Name, function(p, kv.Value)
					if (key == "Decide" || key == "Report") && value != nil {
						out[value] = p.Types.Name() + "." + key
					}
				}
				return true
			})
		}
	}
	return out
}

func typeName(p *packages.Package, e ast.Expr) string {
	if t := p.TypesInfo.TypeOf(e); t != nil {
		return t.String()
	}
	return ""
}

func function(p *packages.Package, e ast.Expr) types.Object {
	switch e := e.(type) {
	case *ast.Ident:
		return p.TypesInfo.Uses[e]
	case *ast.SelectorExpr:
		return p.TypesInfo.Uses[e.Sel]
	}
	return nil
}

// TestDecisionsArePure checks that Decide and Report of controllers, and all functions of this module that they use
// directly or indirectly, do not read, write or wait, and return the same result when they are called again.
func TestDecisionsArePure(t *testing.T) {
	loaded := load(t)
	all, roots := graph(loaded), decisions(loaded)
	if len(roots) < 20 {
		t.Fatalf("found only %d decisions: the guard would check nothing", len(roots))
	}
	allowed := map[string]string{
		"internal/topology/variables/definition.go": "evaluates CEL rules over a value; the context can only cancel the evaluation",
		"internal/topology/patch/template.go":       "the functions of a template share a meter, which is reset for each evaluation",
	}
	reported := map[string]bool{}
	for root, name := range roots {
		if all[root] == nil {
			t.Errorf("%s is not a function of this module: the guard cannot check it", name)
			continue
		}
		for _, path := range impurePaths(all, root) {
			file, _, _ := strings.Cut(path, ":")
			if !reported[path] && allowed[file] == "" {
				reported[path] = true
				t.Errorf("%s: %s", name, path)
			}
		}
	}
	t.Logf("%d decisions, %d functions and variables of this module", len(roots), len(all))
}

// impurePaths returns the impure statements that a root reaches, with the functions in between.
func impurePaths(all map[types.Object]*code, root types.Object) []string {
	type step struct {
		object types.Object
		path   string
	}
	var out []string
	seen, queue := map[types.Object]bool{root: true}, []step{{root, all[root].name}}
	for len(queue) > 0 {
		at := queue[0]
		queue = queue[1:]
		for _, found := range all[at.object].impure {
			out = append(out, found+" (by "+at.path+")")
		}
		for _, used := range all[at.object].uses {
			if all[used] != nil && !seen[used] {
				seen[used] = true
				queue = append(queue, step{used, at.path + " → " + all[used].name})
			}
		}
	}
	return out
}

// controllerPackages matches the packages of controllers.
var controllerPackages = regexp.MustCompile(`^internal/(controllers|kubeadm|hosted|local)(/|$)`)

// snapshotOf returns the type of a package that contains everything that a controller read.
func snapshotOf(p *types.Package) (*types.TypeName, bool) {
	for _, name := range []string{"Snapshot", "snapshot"} {
		if t, ok := p.Scope().Lookup(name).(*types.TypeName); ok {
			return t, true
		}
	}
	return nil, false
}

// TestSnapshotsAreValues checks that no Snapshot, which is the input of decisions, contains anything that reads, writes or
// changes by itself.
func TestSnapshotsAreValues(t *testing.T) {
	allowed := map[string]string{
		"extensionconfig.Catalog: ":         "conversions and constructors of hook types, which are the same in every process",
		"topology.Compiled: ":               "compiled schemas, rules and patches of a class, whose results depend on their arguments only",
		"bootstrap.RenderInput: rendered: ": "the result of render, computed once; TestDecisionsArePure checks render",
	}
	found := 0
	for _, p := range load(t) {
		snapshot, ok := snapshotOf(p.Types)
		if !ok || !controllerPackages.MatchString(shortPath(p.PkgPath)) {
			continue
		}
		found++
		for _, part := range noValues(snapshot.Type(), map[types.Type]bool{}) {
			name := p.Types.Name() + "." + part
			if !slices.ContainsFunc(slices.Collect(maps.Keys(allowed)), func(prefix string) bool { return strings.HasPrefix(name, prefix) }) {
				t.Errorf("Snapshot %s: a snapshot must be a value", name)
			}
		}
	}
	if found < 10 {
		t.Errorf("found only %d snapshots: the guard would check nothing", found)
	}
}

// noValues returns the parts of a type that are not values: functions, channels, locks, contexts, and interfaces whose
// methods take a context.
func noValues(of types.Type, seen map[types.Type]bool) []string {
	if seen[of] {
		return nil
	}
	seen[of] = true
	named, isNamed := of.(*types.Named)
	if isNamed && named.Obj().Pkg() != nil {
		if pkg := named.Obj().Pkg().Path(); pkg == "sync" || pkg == "context" || pkg == "github.com/go-logr/logr" {
			return []string{of.String()}
		} else if !strings.HasPrefix(pkg+"/", module) && !types.IsInterface(of) {
			return nil // such as the types of Kubernetes
		}
	}
	switch u := of.Underlying().(type) {
	case *types.Struct:
		var out []string
		for field := range u.Fields() {
			for _, part := range noValues(field.Type(), seen) {
				out = append(out, field.Name()+": "+part)
			}
		}
		return out
	case *types.Pointer:
		return noValues(u.Elem(), seen)
	case *types.Slice:
		return noValues(u.Elem(), seen)
	case *types.Array:
		return noValues(u.Elem(), seen)
	case *types.Map:
		return append(noValues(u.Key(), seen), noValues(u.Elem(), seen)...)
	case *types.Chan, *types.Signature:
		return []string{of.String()}
	case *types.Interface:
		for method := range u.Methods() {
			if takesContext(method.Signature()) {
				return []string{of.String()}
			}
		}
	}
	return nil
}
