package container

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// What exists is changed, entered and looked at by ID in two files alone, where it was identified by its labels: a name
// from a spec or a status never reaches Docker elsewhere.
func TestOnlyWhatIsIdentifiedIsActedUpon(t *testing.T) {
	allowed := map[string][]string{
		"identify.go": {"ContainerInspect", "VolumeInspect", "ContainerStart", "ContainerRemove", "VolumeRemove", "NetworkRemove"},
		"exec.go":     {"ExecCreate", "ExecAttach", "ExecStart", "ExecInspect"},
		"machine.go":  {"ContainerCreate"},
		"network.go":  {"NetworkCreate"},
	}
	harmless := []string{"ContainerList", "NetworkList", "VolumeList", "ImageInspect", "Events", "Info", "Ping", "DaemonHost", "Close"}
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	seen := 0
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		syntax, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(syntax, func(n ast.Node) bool {
			call, ok := n.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			if api, ok := call.X.(*ast.SelectorExpr); !ok || api.Sel.Name != "api" {
				return true
			}
			seen++
			if !slices.Contains(harmless, call.Sel.Name) && !slices.Contains(allowed[file], call.Sel.Name) {
				t.Errorf("%s calls %s of Docker: identify what it is about first (identify.go)", file, call.Sel.Name)
			}
			return true
		})
	}
	if seen < 10 {
		t.Errorf("%d calls of Docker were found, which cannot be all", seen)
	}
}
