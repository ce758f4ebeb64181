package slipway

import (
	"go/ast"
	"go/token"
	"go/types"
	"regexp"
	"strings"
	"testing"

	"golang.org/x/tools/go/packages"
)

var docLinkForm = regexp.MustCompile(`\[\*?([A-Za-z]\w*)(?:\.(\w+))?\](?:[^(:\w]|$)`)

// TestCommentsNameWhatExists checks that the doc links ([Name], [Type.Member], [package.Name]) in comments exist, and that
// the comment of a declaration begins with its name. Both break unnoticed when something is renamed.
func TestCommentsNameWhatExists(t *testing.T) {
	links := 0
	for _, p := range load(t) {
		if !strings.HasPrefix(p.PkgPath, module) {
			continue
		}
		for _, f := range p.Syntax {
			if ast.IsGenerated(f) {
				continue
			}
			for _, group := range f.Comments {
				for _, m := range docLinkForm.FindAllStringSubmatch(group.Text(), -1) {
					if isLinkTarget(p, f, m[1], m[2]) {
						links++
					} else if m[2] != "" || ast.IsExported(m[1]) {
						t.Errorf("%s: the comment links to %s, which does not exist", p.Fset.Position(group.Pos()), strings.Trim(m[0], " ,;:)"))
					}
				}
			}
			checkFirstWords(t, p, f)
		}
	}
	if links < 300 {
		t.Errorf("found only %d links", links)
	}
}

// isLinkTarget reports whether a link of a comment in file f of package p leads somewhere.
func isLinkTarget(p *packages.Package, f *ast.File, name, member string) bool {
	o := p.Types.Scope().Lookup(name)
	if member == "" {
		return o != nil || types.Universe.Lookup(name) != nil
	}
	if o != nil {
		found, _, _ := types.LookupFieldOrMethod(o.Type(), true, p.Types, member)
		return found != nil
	}
	for _, i := range p.Imports {
		if i.Types != nil && (i.Types.Name() == name || importName(f, i.PkgPath) == name) {
			return i.Types.Scope().Lookup(member) != nil
		}
	}
	return false
}

func importName(f *ast.File, path string) string {
	for _, i := range f.Imports {
		if i.Name != nil && strings.Trim(i.Path.Value, `"`) == path {
			return i.Name.Name
		}
	}
	return ""
}

// checkFirstWords checks the comments of functions, types, and methods of interfaces.
func checkFirstWords(t *testing.T, p *packages.Package, f *ast.File) {
	t.Helper()
	check := func(name *ast.Ident, doc *ast.CommentGroup) {
		if doc == nil {
			return
		}
		words := strings.Fields(doc.Text())
		if len(words) > 1 && (words[0] == "A" || words[0] == "An" || words[0] == "The") {
			words = words[1:]
		}
		if len(words) > 0 && strings.TrimRight(words[0], ",:") != name.Name {
			t.Errorf("%s: the comment of %s begins with %q", p.Fset.Position(doc.Pos()), name.Name, words[0])
		}
	}
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncDecl:
			check(n.Name, n.Doc)
			return false
		case *ast.GenDecl:
			for _, spec := range n.Specs {
				if s, ok := spec.(*ast.TypeSpec); ok && (s.Doc != nil || n.Tok == token.TYPE && !n.Lparen.IsValid()) {
					doc := s.Doc
					if doc == nil {
						doc = n.Doc
					}
					check(s.Name, doc)
				}
			}
		case *ast.InterfaceType:
			for _, m := range n.Methods.List {
				if len(m.Names) == 1 {
					check(m.Names[0], m.Doc)
				}
			}
		}
		return true
	})
}
