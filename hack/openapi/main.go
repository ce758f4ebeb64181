// Command openapi writes internal/hook/openapi/generated/descriptions.json.gz: the descriptions of the fields of the
// hooks' Go types, from the comments in their source. Run `go run ./hack/openapi` from the root of the module. It
// writes the file only when its content changes, so that builds stay incremental. Schemas are not part of the file;
// package internal/hook/openapi derives them from the Go types.
package main

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"github.com/slipwayhq/slipway/sdk/hooks"
	"github.com/slipwayhq/slipway/sdk/hooks/openapi"
)

const output = "internal/hook/openapi/generated/descriptions.json.gz"

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "generate:", err)
		os.Exit(1)
	}
}

func run() error {
	descriptions, err := collectAll()
	if err != nil {
		return err
	}
	packed, err := pack(descriptions)
	if err != nil {
		return err
	}
	if old, err := os.ReadFile(output); err == nil && bytes.Equal(old, packed) {
		return nil
	}
	fmt.Printf("wrote %s (%d descriptions)\n", output, len(descriptions))
	return os.WriteFile(output, packed, 0o644)
}

// collectAll returns the descriptions of all fields.
func collectAll() (map[string]string, error) {
	packages, wanted, err := types()
	if err != nil {
		return nil, err
	}
	dirs, err := folders(packages)
	if err != nil {
		return nil, err
	}
	out := map[string]string{}
	for path, dir := range dirs {
		if err := collect(path, dir, wanted, out); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// types returns the structs that the document uses, and their packages.
func types() (packages []string, wanted map[string]bool, err error) {
	wanted = map[string]bool{}
	_, err = openapi.Document(hooks.Default(), openapi.Info{Describe: func(t reflect.Type, _ string) string {
		wanted[t.PkgPath()+"."+t.Name()] = true
		packages = append(packages, t.PkgPath())
		return ""
	}})
	slices.Sort(packages)
	return slices.Compact(packages), wanted, err
}

// folders returns the source directory of each package.
func folders(packages []string) (map[string]string, error) {
	list, err := exec.Command("go", append([]string{"list", "-f", "{{.ImportPath}} {{.Dir}}"}, packages...)...).Output()
	if err != nil {
		return nil, fmt.Errorf("finding the source of the types: %w", err)
	}
	dirs := map[string]string{}
	for line := range strings.Lines(string(list)) {
		path, dir, _ := strings.Cut(strings.TrimSpace(line), " ")
		dirs[path] = dir
	}
	return dirs, nil
}

// collect adds the comments of the wanted types in a package.
func collect(path, dir string, wanted map[string]bool, out map[string]string) error {
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		return err
	}
	for _, file := range files {
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ParseComments)
		if err != nil {
			return fmt.Errorf("reading the source of %s: %w", path, err)
		}
		ast.Inspect(parsed, func(n ast.Node) bool {
			decl, ok := n.(*ast.GenDecl)
			if !ok {
				return true
			}
			for _, s := range decl.Specs {
				if spec, ok := s.(*ast.TypeSpec); ok && wanted[path+"."+spec.Name.Name] {
					describe(path+"."+spec.Name.Name, decl, spec, out)
				}
			}
			return false
		})
	}
	return nil
}

func describe(key string, decl *ast.GenDecl, spec *ast.TypeSpec, out map[string]string) {
	doc := spec.Doc
	if doc == nil {
		doc = decl.Doc
	}
	add(out, key, doc)
	body, ok := spec.Type.(*ast.StructType)
	if !ok {
		return
	}
	for _, f := range body.Fields.List {
		if f.Tag == nil {
			continue
		}
		name, _, _ := strings.Cut(reflect.StructTag(strings.Trim(f.Tag.Value, "`")).Get("json"), ",")
		if name != "" && name != "-" {
			add(out, key+"."+name, f.Doc)
		}
	}
}

// add stores a comment without the lines that are markers for code generators.
func add(out map[string]string, key string, doc *ast.CommentGroup) {
	var lines []string
	for line := range strings.Lines(doc.Text()) {
		if line = strings.TrimRight(line, "\n"); !strings.HasPrefix(strings.TrimSpace(line), "+") {
			lines = append(lines, line)
		}
	}
	if text := strings.TrimSpace(strings.Join(lines, "\n")); text != "" {
		out[key] = text
	}
}

func pack(out map[string]string) ([]byte, error) {
	var packed bytes.Buffer
	writer := gzip.NewWriter(&packed)
	if err := json.NewEncoder(writer).Encode(out); err != nil {
		return nil, fmt.Errorf("writing the descriptions: %w", err)
	}
	if err := writer.Close(); err != nil {
		return nil, fmt.Errorf("compressing the descriptions: %w", err)
	}
	return packed.Bytes(), nil
}
