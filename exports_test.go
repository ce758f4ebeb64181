package slipway

import (
	"go/ast"
	"go/types"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// TestExportedNamesAreUsed: every exported package-level name below internal is used by another package. A package is an
// interface: what nobody needs is not part of it. A type counts as used if the signature of a used name contains it. A use in
// a test counts only for packages that help tests, and for the names in hack/test-exports.txt.
func TestExportedNamesAreUsed(t *testing.T) {
	used := map[types.Object]bool{}
	declared := map[string]map[string]types.Object{} // by package and name
	for _, p := range load(t) {
		scope := p.Types.Scope()
		names := map[string]types.Object{}
		for _, name := range scope.Names() {
			names[name] = scope.Lookup(name)
		}
		declared[shortPath(p.PkgPath)] = names
		for _, o := range p.TypesInfo.Uses {
			if isPackageLevel(o) && o.Pkg() != p.Types {
				use(o, used)
			}
		}
	}
	helpers := testHelpers(t)
	for _, s := range sources(t) {
		if _, loaded := declared[s.dir]; s.isTest() || !loaded {
			for _, o := range usedBySource(s, declared) {
				if !s.isTest() || helpers[shortPath(o.Pkg().Path())] {
					use(o, used)
				}
			}
		}
	}
	tested := testExports(t)
	found := 0
	for dir, names := range declared {
		if !strings.HasPrefix(dir, "internal/") {
			continue
		}
		for name, o := range names {
			if !o.Exported() {
				continue
			}
			found++
			if listed := tested[dir+" "+name]; !used[o] && !listed {
				t.Errorf("%s.%s is used by no other package, tests apart: make it private", dir, name)
			} else if used[o] && listed {
				t.Errorf("%s.%s is used by another package: remove it from hack/test-exports.txt", dir, name)
			}
			delete(tested, dir+" "+name)
		}
	}
	for name := range tested {
		t.Errorf("%s does not exist: remove it from hack/test-exports.txt", name)
	}
	if found < 1000 {
		t.Errorf("only %d exported names were found", found)
	}
}

func isPackageLevel(o types.Object) bool {
	return o.Pkg() != nil && strings.HasPrefix(o.Pkg().Path()+"/", module) && o.Parent() == o.Pkg().Scope()
}

// testHelpers returns the packages that only tests and packages of folder test import.
func testHelpers(t *testing.T) map[string]bool {
	helpers := map[string]bool{}
	for _, s := range sources(t) {
		if _, seen := helpers[s.dir]; !seen {
			helpers[s.dir] = true
		}
		for _, p := range imports(s) {
			if dir, ours := strings.CutPrefix(p, module); ours && !s.isTest() && !strings.HasPrefix(s.dir, "test/") {
				helpers[dir] = false
			}
		}
	}
	return helpers
}

// testExports reads the names that only tests of other packages use. The list must only become shorter.
func testExports(t *testing.T) map[string]bool {
	text, err := os.ReadFile("hack/test-exports.txt")
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]bool{}
	for line := range strings.Lines(string(text)) {
		if line = strings.TrimSpace(line); !strings.HasPrefix(line, "#") {
			names[line] = true
		}
	}
	const most = 3 // lower it with each name that leaves the list
	if len(names) > most {
		t.Errorf("hack/test-exports.txt has %d names, at most %d are allowed", len(names), most)
	}
	return names
}

// usedBySource returns the names of other packages that a file uses, by its imports.
func usedBySource(s source, declared map[string]map[string]types.Object) []types.Object {
	local := map[string]map[string]types.Object{}
	for _, i := range s.file.Imports {
		p, err := strconv.Unquote(i.Path.Value)
		dir, ours := strings.CutPrefix(p, module)
		if err != nil || !ours {
			continue
		}
		name := path.Base(p)
		if i.Name != nil {
			name = i.Name.Name
		}
		local[name] = declared[dir]
	}
	var out []types.Object
	ast.Inspect(s.file, func(n ast.Node) bool {
		if sel, ok := n.(*ast.SelectorExpr); ok {
			if x, ok := sel.X.(*ast.Ident); ok {
				if o := local[x.Name][sel.Sel.Name]; o != nil {
					out = append(out, o)
				}
			}
		}
		return true
	})
	return out
}

// use marks a name, and the types in its signature, as used.
func use(o types.Object, used map[types.Object]bool) {
	if used[o] {
		return
	}
	used[o] = true
	var seen []types.Type
	markTypes(o.Type(), used, &seen)
	if t, ok := o.(*types.TypeName); ok {
		markTypes(t.Type().Underlying(), used, &seen)
		if named, ok := t.Type().(*types.Named); ok {
			for m := range named.Methods() {
				if m.Exported() {
					markTypes(m.Type(), used, &seen)
				}
			}
		}
	}
}

// markTypes marks the named types of this module in a type.
func markTypes(t types.Type, used map[types.Object]bool, seen *[]types.Type) {
	if t == nil || slices.Contains(*seen, t) {
		return
	}
	*seen = append(*seen, t)
	mark := func(t types.Type) { markTypes(t, used, seen) }
	switch t := t.(type) {
	case *types.Named:
		if isPackageLevel(t.Obj()) {
			use(t.Obj(), used)
		}
		for a := range t.TypeArgs().Types() {
			mark(a)
		}
	case *types.Alias:
		if isPackageLevel(t.Obj()) {
			use(t.Obj(), used)
		}
		mark(t.Rhs())
	case interface{ Elem() types.Type }: // pointers, slices, arrays, channels and maps
		mark(t.Elem())
		if m, ok := t.(*types.Map); ok {
			mark(m.Key())
		}
	case *types.Signature:
		for v := range t.Params().Variables() {
			mark(v.Type())
		}
		for v := range t.Results().Variables() {
			mark(v.Type())
		}
		for p := range t.TypeParams().TypeParams() {
			mark(p.Constraint())
		}
	case *types.Struct:
		for f := range t.Fields() {
			if f.Exported() {
				mark(f.Type())
			}
		}
	case *types.Interface:
		for m := range t.Methods() {
			mark(m.Type())
		}
	}
}

// TestRooms: a package is a concept. There are at most 150 of them, and one that is small and has one importer says in its
// documentation why it is separate.
func TestRooms(t *testing.T) {
	const most, small = 150, 100
	lines, docs, importers, folders := map[string]int{}, map[string]string{}, map[string]map[string]bool{}, map[string]bool{}
	for _, s := range sources(t) {
		if strings.HasPrefix(s.dir, "internal/") || strings.HasPrefix(s.dir, "config/") || strings.HasPrefix(s.dir, "cmd/") {
			folders[s.dir] = true
		}
		if !s.isTest() && s.file.Name.Name != "main" {
			lines[s.dir] += s.lines()
			docs[s.dir] += s.file.Doc.Text()
		}
		for _, p := range imports(s) {
			if dir, ours := strings.CutPrefix(p, module); ours && dir != s.dir {
				if importers[dir] == nil {
					importers[dir] = map[string]bool{}
				}
				importers[dir][s.dir] = true
			}
		}
	}
	if len(folders) > most || len(folders) < most/2 {
		t.Errorf("%d folders with packages below internal, config and cmd, at most %d", len(folders), most)
	}
	for dir := range folders {
		if n := lines[dir]; n > 0 && n < small && len(importers[dir]) == 1 && !strings.Contains(docs[dir], "a package of its own because") {
			t.Errorf("%s has %d lines and one importer: merge it, or say in its documentation that it is a package of its own because …", dir, n)
		}
	}
}
