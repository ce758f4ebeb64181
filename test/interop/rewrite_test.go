package interop

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// shimImport is the package in the copy of the reference that reviews objects; its source is testdata/shim.
const shimImport = "sigs.k8s.io/cluster-api/internal/slipway"

// reviewedParts are functions of the reference that validate or default a part of an object: what the shim does instead. Its parameters
// are p0, p1 and so on, and reference is the result of the reference's function.
var reviewedParts = map[string]string{
	"validatePatches":                              `return slipway.Errors(slipway.Object{New: p0}, reference, "spec.patches")`,
	"validateSelectors":                            `return slipway.Errors(slipway.Object{New: slipway.Selecting(p1, p0)}, reference, "spec.patches")`,
	"validateAutoscalerAnnotationsForCluster":      `return slipway.Errors(slipway.Object{Reader: slipway.Using(p1, p0), New: p0}, reference, "replicas")`,
	"validateAutoscalerAnnotationsForClusterClass": `return slipway.Errors(slipway.Object{Reader: slipway.UsedBy(p1, p0), Old: p1, New: p1}, reference, "spec.workers")`,
	"validateSkippedMachineSetPreflightChecks":     `return slipway.First(slipway.Errors(slipway.Object{New: p0}, slipway.List(reference), "metadata.annotations"))`,
	"validateVersion":                              `return slipway.Errors(slipway.Object{Old: p0, New: p1}, reference, "spec.version")`,
	"validateTopologyControlPlaneVersion":          `return slipway.Upgrade(p0, p1, p2, fmt.Sprintf("v%d.%d.0", p3.Major, p3.Minor+1), reference)`,
	"validateTopologyMachineDeploymentVersions":    `return slipway.Upgrade(p0, p1, p2, fmt.Sprintf("v%d.%d.0", p3.Major, p3.Minor+1), reference)`,
	"validateTopologyMachinePoolVersions":          `return slipway.Upgrade(p0, p1, p3, fmt.Sprintf("v%d.%d.0", p4.Major, p4.Minor+1), reference)`,
	"calculateMachineDeploymentReplicas":           `return slipway.Replicas(p1, p2, reference, err)`,
	"calculateMachineSetReplicas":                  `return slipway.Replicas(p1, p2, reference, err)`,
	"calculateMachinePoolReplicas":                 `return slipway.Replicas(p1, p2, reference, err)`,
}

// copyFolder copies a folder without what Go does not read.
func copyFolder(t *testing.T, from, to string) {
	t.Helper()
	if err := os.RemoveAll(to); err != nil {
		t.Fatal(err)
	}
	err := filepath.WalkDir(from, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		if d.IsDir() {
			if name == "docs" || name == "hack" {
				return filepath.SkipDir
			}
			return os.MkdirAll(filepath.Join(to, name), 0o755)
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(to, name), data, 0o644)
	})
	if err != nil {
		t.Fatal(err)
	}
}

// rewriteWebhooks lets the webhooks of a package call the shim; the reference's functions stay under another name.
func rewriteWebhooks(t *testing.T, folder string) {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(folder, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	w := rewriter{fset: token.NewFileSet(), readers: map[string]bool{}, replaced: map[string]bool{}}
	sources, files := map[string][]byte{}, map[string]*ast.File{}
	for _, path := range paths {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		if sources[path], err = os.ReadFile(path); err != nil {
			t.Fatal(err)
		}
		if files[path], err = parser.ParseFile(w.fset, path, sources[path], 0); err != nil {
			t.Fatal(err)
		}
		w.read(files[path])
	}
	if len(w.replaced) == 0 {
		t.Fatalf("no webhook was found in %s", folder)
	}
	for path, file := range files {
		if err := os.WriteFile(path, w.rewrite(file, sources[path]), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// rewriter rewrites the files of a package.
type rewriter struct {
	fset *token.FileSet
	// readers are the types with a client.
	readers map[string]bool
	// replaced are the functions that the shim replaces: "validatePatches", "Cluster.Default".
	replaced map[string]bool
}

// read finds what of a file is replaced.
func (w rewriter) read(file *ast.File) {
	for _, d := range file.Decls {
		if f, ok := d.(*ast.FuncDecl); ok {
			if w.body(f) != "" {
				w.replaced[fullName(f, f.Name.Name)] = true
			}
			continue
		}
		ast.Inspect(d, func(n ast.Node) bool {
			if spec, ok := n.(*ast.TypeSpec); ok {
				if s, ok := spec.Type.(*ast.StructType); ok {
					w.readers[spec.Name.Name] = slices.ContainsFunc(s.Fields.List, func(f *ast.Field) bool {
						return len(f.Names) > 0 && f.Names[0].Name == "Client"
					})
				}
			}
			return true
		})
	}
}

// fullName is the name of a function or method beside another one.
func fullName(f *ast.FuncDecl, name string) string {
	if f.Recv == nil {
		return name
	}
	return strings.TrimPrefix(types.ExprString(f.Recv.List[0].Type), "*") + "." + name
}

// edit is a name that gets another one.
type edit struct {
	offset int
	name   string
}

// rewrite returns the source of a file with the shim.
func (w rewriter) rewrite(file *ast.File, source []byte) []byte {
	var edits []edit
	var added bytes.Buffer
	for _, d := range file.Decls {
		f, ok := d.(*ast.FuncDecl)
		if !ok {
			continue
		}
		edits = append(edits, w.calls(f)...)
		if body := w.body(f); body != "" {
			edits = append(edits, edit{w.fset.Position(f.Name.Pos()).Offset, f.Name.Name})
			fmt.Fprintf(&added, "\n%s {\n%s\n}\n", signature(f), body)
		}
	}
	slices.SortFunc(edits, func(a, b edit) int { return a.offset - b.offset })
	var out bytes.Buffer
	at := w.fset.Position(file.Name.End()).Offset
	out.Write(source[:at])
	if added.Len() > 0 {
		fmt.Fprintf(&out, "\n\nimport %q\n", shimImport)
	}
	for _, e := range edits {
		out.Write(source[at:e.offset])
		out.WriteString(renamed(e.name))
		at = e.offset + len(e.name)
	}
	out.Write(source[at:])
	out.Write(added.Bytes())
	return out.Bytes()
}

// renamed is the name of a function of the reference that the shim replaces.
func renamed(name string) string { return "reference" + strings.ToUpper(name[:1]) + name[1:] }

// calls finds the calls of replaced functions: the reference calls its own.
func (w rewriter) calls(f *ast.FuncDecl) (out []edit) {
	ast.Inspect(f.Body, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok {
			return true
		}
		switch called := call.Fun.(type) {
		case *ast.Ident:
			if w.replaced[called.Name] {
				out = append(out, edit{w.fset.Position(called.Pos()).Offset, called.Name})
			}
		case *ast.SelectorExpr:
			on, ok := called.X.(*ast.Ident)
			if ok && f.Recv != nil && len(f.Recv.List[0].Names) > 0 && on.Name == f.Recv.List[0].Names[0].Name && w.replaced[fullName(f, called.Sel.Name)] {
				out = append(out, edit{w.fset.Position(called.Sel.Pos()).Offset, called.Sel.Name})
			}
		}
		return true
	})
	return out
}

// signature is that of a function, with a receiver called webhook and parameters called p0, p1 and so on.
func signature(f *ast.FuncDecl) string {
	var out strings.Builder
	out.WriteString("func ")
	if f.Recv != nil {
		fmt.Fprintf(&out, "(webhook %s) ", types.ExprString(f.Recv.List[0].Type))
	}
	var in, results []string
	for n, p := range parameters(f) {
		in = append(in, fmt.Sprintf("p%d %s", n, p))
	}
	for _, r := range f.Type.Results.List {
		results = append(results, types.ExprString(r.Type))
	}
	fmt.Fprintf(&out, "%s(%s) (%s)", f.Name.Name, strings.Join(in, ", "), strings.Join(results, ", "))
	return out.String()
}

// parameters are the types of a function's parameters.
func parameters(f *ast.FuncDecl) (out []string) {
	for _, p := range f.Type.Params.List {
		for range max(1, len(p.Names)) {
			out = append(out, types.ExprString(p.Type))
		}
	}
	return out
}

// body is that of the function in the place of one of the reference; empty: it is not replaced.
func (w rewriter) body(f *ast.FuncDecl) string {
	var arguments, objects []string
	ctx, others := "slipway.Background()", false
	for n, p := range parameters(f) {
		name := fmt.Sprintf("p%d", n)
		arguments = append(arguments, name)
		switch {
		case p == "context.Context":
			ctx = name
		case strings.HasPrefix(p, "*"):
			objects = append(objects, name)
		default:
			others = true
		}
	}
	reference := renamed(f.Name.Name) + "(" + strings.Join(arguments, ", ") + ")"
	if f.Recv != nil {
		reference = "webhook." + reference
	}
	if part, ok := reviewedParts[f.Name.Name]; ok {
		if strings.HasPrefix(f.Name.Name, "calculate") {
			return "reference, err := " + reference + "\n" + part
		}
		return "reference := " + reference + "\n" + part
	}
	reader := "nil"
	if f.Recv != nil && w.hasClient(f) {
		reader = "webhook.Client"
	}
	switch {
	case f.Recv == nil:
		return ""
	case f.Name.Name == "Handle":
		return fmt.Sprintf("return slipway.Handle(p0, %s, p1, %s)", reader, reference)
	case others || len(objects) == 0 || len(objects) > 2:
		return ""
	case f.Name.Name == "Default":
		return fmt.Sprintf("p1, original := p1.DeepCopy(), p1\nerr := %s\nreturn slipway.Default(%s, %s, original, p1, err)", reference, ctx, reader)
	case f.Name.Name == "ValidateDelete":
		return fmt.Sprintf("warnings, err := %s\nreturn slipway.ValidateDelete(%s, %s, %s, warnings, err)", reference, ctx, reader, objects[0])
	case slices.Contains([]string{"ValidateCreate", "ValidateUpdate", "validate"}, f.Name.Name):
		if len(objects) == 1 {
			objects = []string{"nil", objects[0]}
		}
		if len(f.Type.Results.List) == 1 {
			return fmt.Sprintf("_, err := slipway.Validate(%s, %s, %s, nil, %s)\nreturn err", ctx, reader, strings.Join(objects, ", "), reference)
		}
		return fmt.Sprintf("warnings, err := %s\nreturn slipway.Validate(%s, %s, %s, warnings, err)", reference, ctx, reader, strings.Join(objects, ", "))
	}
	return ""
}

func (w rewriter) hasClient(f *ast.FuncDecl) bool {
	return w.readers[strings.TrimPrefix(types.ExprString(f.Recv.List[0].Type), "*")]
}
