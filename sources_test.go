package slipway

import (
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"strconv"
	"strings"
	"testing"
)

// TestSourcesAreComplete checks that Sources includes every package of this module that one of its files imports, because
// the programs of other Kubernetes versions are compiled from these sources alone.
func TestSourcesAreComplete(t *testing.T) {
	const module = "github.com/slipwayhq/slipway/"
	found := 0
	err := fs.WalkDir(Sources, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || strings.HasSuffix(name, "_test.go") {
			return err
		}
		text, err := fs.ReadFile(Sources, name)
		if err != nil {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, text, parser.ImportsOnly)
		if err != nil {
			return err
		}
		for _, i := range file.Imports {
			imported, err := strconv.Unquote(i.Path.Value)
			if err != nil {
				return err
			}
			folder, own := strings.CutPrefix(imported, module)
			if !own {
				continue
			}
			found++
			if files, err := fs.Glob(Sources, path.Join(folder, "*.go")); err != nil || len(files) == 0 {
				t.Errorf("%s imports %s, which is not in sources.go: the program of another Kubernetes version would not compile", name, imported)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if found == 0 {
		t.Error("found no import of this module")
	}
}
