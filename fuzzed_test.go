package slipway

import (
	"go/ast"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// notFuzzed are exported functions named like parsers that need no fuzz target, each with the reason.
var notFuzzed = map[string]string{
	"internal/clusterctl/certificates.ParseMode":      "a flag of the person who runs the command, one of a few words",
	"internal/operate/upgrade.ParseResource":          "arguments of the person who runs the command, split at a slash",
	"internal/operate/upgrade.ReadRollout":            "the text is the namespace whose objects are read through the API",
	"internal/clusterctl/move/transfer.Endpoint.Read": "the texts are a namespace and names, whose objects are read through the API",
	"internal/clusterctl/template.Source.Read":        "the text is where a template is; what is there is parsed in internal/clusterctl/repository",
	"internal/machines.ReadStrays":                    "the text is the name of an owner, whose objects are read through the API",
	"internal/manager/migration.ParsePhases":          "a flag of the person who starts the manager, each one of a few words",
	"internal/controlplane/uidisolation.Read":         "the texts are a folder and a name; the content is returned as it is",
	"internal/controlplane/uidisolation.ReadTrusted":  "the texts are a folder and a name; the content is returned as it is",
	"internal/release.ReadArtifact":                   "the texts are a path and a version of the person who makes a release",
}

// parserName is how functions that read what others write are named.
var parserName = regexp.MustCompile(`^(Parse|Read|Decode)([A-Z]|$)`)

// TestParsersAreFuzzed: an exported function of internal/ that is named Parse, Read or Decode and takes bytes, a text or a reader has a fuzz
// target in its package, or stands in the list above.
func TestParsersAreFuzzed(t *testing.T) {
	fuzzed, unneeded, found := map[string]bool{}, map[string]bool{}, 0
	for name := range notFuzzed {
		unneeded[name] = true
	}
	all := sources(t)
	for _, s := range all {
		for _, f := range functions(s) {
			if s.isTest() && f.Recv == nil && strings.HasPrefix(f.Name.Name, "Fuzz") {
				fuzzed[s.dir] = true
			}
		}
	}
	for _, s := range all {
		if s.isTest() || !strings.HasPrefix(s.dir, "internal/") {
			continue
		}
		for _, f := range functions(s) {
			if !isParser(f) {
				continue
			}
			found++
			name := s.dir + "." + receiverOf(f) + f.Name.Name
			delete(unneeded, name)
			switch _, listed := notFuzzed[name]; {
			case listed && fuzzed[s.dir]:
				t.Errorf("%s is in the list of notFuzzed, and its package has a fuzz target", name)
			case !listed && !fuzzed[s.dir]:
				t.Errorf("%s has no fuzz target in its package: write one, or say in notFuzzed why it needs none", name)
			}
		}
	}
	for name := range unneeded {
		t.Errorf("%s is in the list of notFuzzed and is no parser (any more)", name)
	}
	if found < 20 {
		t.Errorf("only %d parsers found: the test looks at nothing", found)
	}
}

func functions(s source) (out []*ast.FuncDecl) {
	for _, d := range s.file.Decls {
		if f, ok := d.(*ast.FuncDecl); ok {
			out = append(out, f)
		}
	}
	return out
}

// isParser reports whether others may call a function by a name of a parser, with something to parse. The method of an io.Reader is none.
func isParser(f *ast.FuncDecl) bool {
	receiver := receiverOf(f)
	if !parserName.MatchString(f.Name.Name) || receiver != "" && !ast.IsExported(receiver) {
		return false
	}
	params := f.Type.Params.List
	if f.Name.Name == "Read" && receiver != "" && len(params) == 1 && isText(params[0].Type) {
		return false
	}
	return slices.ContainsFunc(params, func(p *ast.Field) bool { return isText(p.Type) })
}

// isText reports whether a type is bytes, a text or a reader, or several of them.
func isText(of ast.Expr) bool {
	switch of := of.(type) {
	case *ast.Ident:
		return of.Name == "string"
	case *ast.ArrayType:
		element, ok := of.Elt.(*ast.Ident)
		return ok && element.Name == "byte" || isText(of.Elt)
	case *ast.MapType:
		return isText(of.Value)
	case *ast.Ellipsis:
		return isText(of.Elt)
	case *ast.SelectorExpr:
		from, ok := of.X.(*ast.Ident)
		return ok && from.Name == "io" && strings.HasPrefix(of.Sel.Name, "Read")
	}
	return false
}

// receiverOf is the type that a method is of, with a dot behind it; empty: it is a function.
func receiverOf(f *ast.FuncDecl) string {
	if f.Recv == nil || len(f.Recv.List) == 0 {
		return ""
	}
	of := f.Recv.List[0].Type
	if p, ok := of.(*ast.StarExpr); ok {
		of = p.X
	}
	if name, ok := of.(*ast.Ident); ok {
		return name.Name + "."
	}
	return ""
}
