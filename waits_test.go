package slipway

import (
	"go/ast"
	"go/constant"
	"go/types"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/tools/go/packages"
)

// TestWaitsSayWhatEndsThem checks that every wait of a plan has an object (For, ForAll) and an end (ToChange, ForTime,
// UntilUserActs), set in the statement that adds the wait or through the variable that it is assigned to.
func TestWaitsSayWhatEndsThem(t *testing.T) {
	waits := 0
	for _, p := range load(t) {
		pkg := shortPath(p.PkgPath)
		if pkg == "internal/reconciler" {
			continue
		}
		for _, file := range p.Syntax {
			for _, decl := range file.Decls {
				for _, w := range waitsOf(p, decl) {
					waits++
					if w.missing == "" {
						continue
					}
					at := p.Fset.Position(w.at.Pos())
					t.Errorf("%s/%s:%d: the wait lacks %s", pkg, filepath.Base(at.Filename), at.Line, w.missing)
				}
			}
		}
	}
	if waits < 60 {
		t.Errorf("found only %d waits: the calls that add them have another form", waits)
	}
}

// TestStatusReadsTheStage checks that no controller reads a single wait of a plan by its position: a status that is
// inferred from the first wait is wrong as soon as another wait comes first. Plans have a stage instead.
func TestStatusReadsTheStage(t *testing.T) {
	for _, p := range load(t) {
		pkg := shortPath(p.PkgPath)
		for _, file := range p.Syntax {
			ast.Inspect(file, func(n ast.Node) bool {
				index, ok := n.(*ast.IndexExpr)
				if !ok {
					return true
				}
				if sel, ok := index.X.(*ast.SelectorExpr); ok && sel.Sel.Name == "Waits" && strings.TrimPrefix(typeName(p, sel.X), "*") == loopPackage+".Plan" && pkg != "internal/reconciler" {
					t.Errorf("%s: reads one wait of a plan; use Plan.Stage", p.Fset.Position(n.Pos()))
				}
				return true
			})
		}
	}
}

// otherWatches are kinds that controllers watch without their builder.
func otherWatches() map[string][]string {
	return map[string][]string{
		"internal/controllers/extensionconfig":   {"Secret"},  // secrets.go watches the Secrets of extensions
		"internal/controllers/machinedeployment": {"Machine"}, // its changes reach the status of the MachineSet, which is watched
	}
}

// TestWaitsNameWatchedKinds checks that the event that ends a wait reaches the controller: the kinds that a wait for a change
// names are kinds that its controller watches. Kinds of provider objects, which are not constants, are watched when they
// are read (kube.References).
func TestWaitsNameWatchedKinds(t *testing.T) {
	checked := 0
	for _, p := range load(t) {
		watched := watchedKinds(p)
		if len(watched) == 0 {
			continue
		}
		for _, kind := range otherWatches()[shortPath(p.PkgPath)] {
			watched[kind] = true
		}
		for _, file := range p.Syntax {
			for _, decl := range file.Decls {
				for _, w := range waitsOf(p, decl) {
					if !w.said["ToChange"] {
						continue
					}
					for _, kind := range w.kinds {
						checked++
						if !watched[kind] {
							t.Errorf("%s: waits for a change of a %s, which its controller does not watch", p.Fset.Position(w.at.Pos()), kind)
						}
					}
				}
			}
		}
	}
	if checked < 30 {
		t.Errorf("checked only %d waits", checked)
	}
}

// watchedKinds returns the kinds that the controllers of a package watch: the objects that are passed to the builder of a
// controller, or named in the request of a watch in a workload cluster.
func watchedKinds(p *packages.Package) map[string]bool {
	watched, builds := map[string]bool{}, false
	for _, file := range p.Syntax {
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.CallExpr:
				if sel, ok := n.Fun.(*ast.SelectorExpr); ok {
					switch sel.Sel.Name {
					case "Builder", "For", "Watches", "WatchesMetadata":
						builds = addKinds(p, watched, n.Args) || builds
					}
				}
			case *ast.CompositeLit:
				if strings.HasSuffix(typeName(p, n), "internal/workload.WatchRequest") {
					addKinds(p, watched, n.Elts)
				}
			}
			return true
		})
	}
	if !builds {
		return nil
	}
	return watched
}

// addKinds adds the types of the objects in a list of expressions, which have the form &T{}, and reports whether there are
// any.
func addKinds(p *packages.Package, kinds map[string]bool, list []ast.Expr) (found bool) {
	for _, e := range list {
		if kv, ok := e.(*ast.KeyValueExpr); ok {
			e = kv.Value
		}
		if u, ok := e.(*ast.UnaryExpr); ok {
			name := typeName(p, u)
			kinds[name[strings.LastIndex(name, ".")+1:]], found = true, true
		}
	}
	return found
}

// wait is a place in the code where a wait is added, with the methods that are called on it and the constant kinds of its
// objects. missing describes the missing part, if any.
type wait struct {
	at      ast.Node
	said    map[string]bool
	kinds   []string
	missing string
}

const loopPackage = module + "internal/reconciler"

// waitsOf returns the waits that a declaration adds.
func waitsOf(p *packages.Package, decl ast.Decl) []wait {
	var out []wait
	var stack []ast.Node
	ast.Inspect(decl, func(n ast.Node) bool {
		if n == nil {
			stack = stack[:len(stack)-1]
			return true
		}
		stack = append(stack, n)
		switch n := n.(type) {
		case *ast.CallExpr:
			if f, ok := function(p, n.Fun).(*types.Func); ok && f.FullName() == "(*"+loopPackage+".Plan).WaitFor" {
				w := wait{at: n, said: map[string]bool{}}
				w.sayAll(p, decl, w.chained(p, stack))
				w.missing = missing(w.said)
				out = append(out, w)
			}
		case *ast.CompositeLit:
			if typeName(p, n) == loopPackage+".Wait" {
				out = append(out, wait{at: n, missing: "a call of Plan.WaitFor, which has to create it"})
			}
		}
		return true
	})
	return out
}

func missing(said map[string]bool) string {
	switch {
	case !said["For"] && !said["ForAll"]:
		return "an object (For)"
	case !said["ToChange"] && !said["ForTime"] && !said["UntilUserActs"]:
		return "an end (ToChange, ForTime or UntilUserActs)"
	}
	return ""
}

// say records a call of a method of the wait.
func (w *wait) say(p *packages.Package, method string, args []ast.Expr) {
	w.said[method] = true
	if method != "For" && method != "ForAll" {
		return
	}
	if kind := p.TypesInfo.Types[args[0]].Value; kind != nil && kind.Kind() == constant.String {
		w.kinds = append(w.kinds, constant.StringVal(kind))
	}
}

// chained records the methods that are called on the result of the last call of a stack, and returns the variable that
// their result is assigned to.
func (w *wait) chained(p *packages.Package, stack []ast.Node) (variable types.Object) {
	for i := len(stack) - 2; i > 0; i -= 2 {
		sel, ok := stack[i].(*ast.SelectorExpr)
		if !ok {
			if a, ok := stack[i].(*ast.AssignStmt); ok {
				if id, ok := a.Lhs[0].(*ast.Ident); ok {
					variable = p.TypesInfo.ObjectOf(id)
				}
			}
			break
		}
		w.say(p, sel.Sel.Name, stack[i-1].(*ast.CallExpr).Args)
	}
	return variable
}

// sayAll records the methods of the wait that a declaration calls on a variable, directly or in a chain of calls.
func (w *wait) sayAll(p *packages.Package, decl ast.Decl, variable types.Object) {
	if variable == nil {
		return
	}
	ast.Inspect(decl, func(n ast.Node) bool {
		outer, ok := n.(*ast.CallExpr)
		if !ok {
			return true
		}
		sel, ok := outer.Fun.(*ast.SelectorExpr)
		if !ok || !strings.HasSuffix(typeName(p, sel.X), loopPackage+".Wait") {
			return true
		}
		root := sel.X
		for {
			call, ok := root.(*ast.CallExpr)
			if !ok {
				break
			}
			inner, ok := call.Fun.(*ast.SelectorExpr)
			if !ok {
				break
			}
			root = inner.X
		}
		if id, ok := root.(*ast.Ident); ok && p.TypesInfo.ObjectOf(id) == variable {
			w.say(p, sel.Sel.Name, outer.Args)
		}
		return true
	})
}
