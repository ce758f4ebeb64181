package slipway

import (
	"go/ast"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// notFuzzed holds exported functions with names of parsers that need no fuzz target, each with the reason.
var notFuzzed = map[string]string{
	"internal/clusterctl/certificates.ParseMode":      "a flag of the user who runs the command, with few valid values",
	"internal/operate/upgrade.ParseResource":          "arguments of the user who runs the command, split at a slash",
	"internal/operate/upgrade.ReadRollout":            "the text is the namespace whose objects are read through the API",
	"internal/clusterctl/move/transfer.Endpoint.Read": "the texts are a namespace and names, whose objects are read through the API",
	"internal/machines.ReadOrphanedNodes":             "the text is the name of an owner, whose objects are read through the API",
	"internal/cli/provider.ParseProviders":            "a flag of the user who runs the command, a list of a few words",
	"internal/manager/crds.ParsePhases":               "a flag of the user who starts the manager, with few valid values",
	"internal/infrastructure.ReadObject":              "the texts are a namespace and a name, whose object is read through the API",
	"internal/ssh/inventory.Read":                     "the text is a namespace, whose hosts are read through the API",
	"internal/plan.ReadCluster":                       "the text is a namespace, whose objects are read through the API",
	"internal/plan.ReadFiles":                         "the texts are paths; the content is parsed in internal/manifest",
	"internal/plan.ReadFolder":                        "the text is a path; the content is parsed in internal/manifest",
	"internal/controlplane/uidisolation.Read":         "the texts are a folder and a name; the content is returned unparsed",
	"internal/controlplane/uidisolation.ReadTrusted":  "the texts are a folder and a name; the content is returned unparsed",
	"internal/controlplane/datadir.ReadJSON":          "the text is a path; encoding/json parses the content, which this program wrote",
}

// parserName matches the names of functions that parse input.
var parserName = regexp.MustCompile(`^(Parse|Read|Decode)([A-Z]|$)`)

// TestParsersAreFuzzed checks that each package below internal/ with an exported function that is named Parse, Read or
// Decode and takes bytes, a text or a reader has a fuzz target, unless notFuzzed lists the function.
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
				t.Errorf("%s is in notFuzzed, but its package has a fuzz target: remove it", name)
			case !listed && !fuzzed[s.dir]:
				t.Errorf("the package of %s has no fuzz target: add one, or add the function to notFuzzed with the reason", name)
			}
		}
	}
	for name := range unneeded {
		t.Errorf("%s is in notFuzzed, but it is not a parser: remove it", name)
	}
	if found < 20 {
		t.Errorf("found only %d parsers: the test would check nothing", found)
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

// isParser reports whether a function or method is exported, has the name of a parser and takes input. The method of an
// io.Reader is not a parser.
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

// isText reports whether a type is bytes, a text, a reader, or a list or map of them.
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

// receiverOf returns the receiver type of a method with a trailing dot, or an empty string for a function.
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
