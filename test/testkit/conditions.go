package testkit

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// Condition is a row of a condition table: a table of type condition.Table, in which a controller lists its conditions.
type Condition struct {
	Type string
	// Negative conditions are False in the normal state.
	Negative bool
}

// AllConditions returns the rows of all condition tables below internal/, sorted by type and without duplicates. Tests
// of packages describe and progress check with it that they handle every condition of every controller. It finds the
// tables by their shape in the source, so a table must be a composite literal.
func AllConditions(t testing.TB) []Condition {
	t.Helper()
	root := folder(t, "github.com/slipwayhq/slipway")
	known := map[string]string{}
	for _, dir := range []string{folder(t, "sigs.k8s.io/cluster-api/api"), filepath.Join(root, "api"), filepath.Join(root, "internal")} {
		maps.Copy(known, constants(t, dir))
	}
	found := map[Condition]bool{}
	for _, file := range parse(t, filepath.Join(root, "internal")) {
		ast.Inspect(file, func(n ast.Node) bool {
			if lit, ok := n.(*ast.CompositeLit); ok && isTable(lit.Type) {
				for _, row := range rows(t, lit, known) {
					found[row] = true
				}
			}
			return true
		})
	}
	all := slices.Collect(maps.Keys(found))
	slices.SortFunc(all, func(a, b Condition) int { return strings.Compare(a.Type, b.Type) })
	if len(all) < 30 {
		t.Fatalf("only %d conditions found: the tables have another shape", len(all))
	}
	return all
}

func folder(t testing.TB, module string) string {
	t.Helper()
	out, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", module).Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(out))
}

// parse reads the Go files below a folder, without tests.
func parse(t testing.TB, dir string) []*ast.File {
	t.Helper()
	var files []*ast.File
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go") {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		files = append(files, file)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// constants returns the string constants below a folder by name. Constants with the same name in different packages
// have the same value, or are not condition types.
func constants(t testing.TB, dir string) map[string]string {
	t.Helper()
	values := map[string]string{}
	alias := map[string]string{}
	for _, file := range parse(t, dir) {
		for _, decl := range file.Decls {
			d, ok := decl.(*ast.GenDecl)
			if !ok || d.Tok != token.CONST {
				continue
			}
			for _, spec := range d.Specs {
				s := spec.(*ast.ValueSpec)
				for i, value := range s.Values {
					switch v := value.(type) {
					case *ast.BasicLit:
						if text, err := strconv.Unquote(v.Value); err == nil && v.Kind == token.STRING && !strings.HasSuffix(s.Names[i].Name, "V1Beta1Condition") {
							values[s.Names[i].Name] = text
						}
					case *ast.Ident:
						alias[s.Names[i].Name] = v.Name
					}
				}
			}
		}
	}
	for name, of := range alias {
		if value, ok := values[of]; ok {
			values[name] = value
		}
	}
	return values
}

// isTable reports whether an expression is condition.Table[...].
func isTable(e ast.Expr) bool {
	index, ok := e.(*ast.IndexExpr)
	if !ok {
		return false
	}
	s, ok := index.X.(*ast.SelectorExpr)
	return ok && s.Sel.Name == "Table"
}

func rows(t testing.TB, table *ast.CompositeLit, known map[string]string) []Condition {
	t.Helper()
	var out []Condition
	for _, e := range table.Elts {
		row, ok := e.(*ast.CompositeLit)
		if !ok {
			continue // condition.Ready(...) is the row Ready
		}
		var c Condition
		for _, field := range row.Elts {
			kv := field.(*ast.KeyValueExpr)
			switch key := kv.Key.(*ast.Ident).Name; key {
			case "Type":
				c.Type = value(kv.Value, known)
			case "Polarity":
				c.Negative = true
			}
		}
		if c.Type != "" {
			out = append(out, c)
		}
	}
	return out
}

// value returns the value of a constant or a literal, or an empty string if it is computed.
func value(e ast.Expr, known map[string]string) string {
	switch e := e.(type) {
	case *ast.SelectorExpr:
		return known[e.Sel.Name]
	case *ast.Ident:
		return known[e.Name]
	case *ast.BasicLit:
		text, _ := strconv.Unquote(e.Value)
		return text
	}
	return ""
}
