package slipway

import (
	"go/ast"
	"go/token"
	"go/types"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/tools/go/packages"
)

// TestNoMutableVariables checks that no package variable is changed after its initialization.
func TestNoMutableVariables(t *testing.T) {
	allowed := map[string]string{
		"internal/kube.parsedFieldSets": "a cache of decoded field sets, which affects only the speed",
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
		if !changed[name] { // this also checks that the test detects changes
			t.Errorf("%s (%s) is not changed: remove the exception", name, why)
		}
	}
}

// changes returns the package variables that a node may change: by assignment, by taking the address, or by calling a
// method with a pointer receiver.
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

// rootVariable returns the package variable of this module that an expression refers to, including parts of the variable.
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
