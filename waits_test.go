package slipway

import (
	"go/ast"
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

// unfinished are the packages that still read a status from the first wait of a plan. The list may only become shorter.
func unfinished() map[string]bool {
	return map[string]bool{"internal/kubeadm/bootstrap": true, "internal/hosted": true}
}

// TestStatusReadsTheStage checks that no controller reads a single wait of a plan by its position: a status that is
// inferred from the first wait is wrong as soon as another wait comes first. Plans have a stage instead.
func TestStatusReadsTheStage(t *testing.T) {
	found := map[string]bool{}
	for _, p := range load(t) {
		pkg := shortPath(p.PkgPath)
		for _, file := range p.Syntax {
			ast.Inspect(file, func(n ast.Node) bool {
				index, ok := n.(*ast.IndexExpr)
				if !ok {
					return true
				}
				if sel, ok := index.X.(*ast.SelectorExpr); ok && sel.Sel.Name == "Waits" && typeName(p, sel.X) == loopPackage+".Plan" && pkg != "internal/reconciler" {
					found[pkg] = true
					if !unfinished()[pkg] {
						t.Errorf("%s: reads one wait of a plan; use Plan.Stage", p.Fset.Position(n.Pos()))
					}
				}
				return true
			})
		}
	}
	for pkg := range unfinished() {
		if !found[pkg] {
			t.Errorf("%s no longer reads a single wait: remove it from the list", pkg)
		}
	}
}

// wait is a place in the code where a wait is added. missing describes the missing part, if any.
type wait struct {
	at      ast.Node
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
				said, variable := chained(p, stack)
				for name := range saidOf(p, decl, variable) {
					said[name] = true
				}
				out = append(out, wait{n, missing(said)})
			}
		case *ast.CompositeLit:
			if typeName(p, n) == loopPackage+".Wait" {
				out = append(out, wait{n, "a call of Plan.WaitFor, which has to create it"})
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

// chained returns the methods that are called on the result of the last call of a stack, and the variable that their
// result is assigned to.
func chained(p *packages.Package, stack []ast.Node) (said map[string]bool, variable types.Object) {
	said = map[string]bool{}
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
		said[sel.Sel.Name] = true
	}
	return said, variable
}

// saidOf returns the methods of a wait that a declaration calls on a variable, directly or in a chain of calls.
func saidOf(p *packages.Package, decl ast.Decl, variable types.Object) map[string]bool {
	said := map[string]bool{}
	if variable == nil {
		return said
	}
	ast.Inspect(decl, func(n ast.Node) bool {
		sel, ok := n.(*ast.SelectorExpr)
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
			said[sel.Sel.Name] = true
		}
		return true
	})
	return said
}
