package manager

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/slipwayhq/slipway/internal/manager/crds"
	"github.com/slipwayhq/slipway/internal/policy"
	"github.com/slipwayhq/slipway/internal/providerset"
)

// Every controller of the program and every CRD of the build belongs to a provider: one that is added without would not be
// started, or started with no one's identity.
func TestEverythingBelongsToAProvider(t *testing.T) {
	var listed []string
	for _, set := range providerset.All() {
		for name := range set.Controllers {
			listed = append(listed, name)
		}
	}
	slices.Sort(listed)
	if diff := cmp.Diff(controllersOfTheProgram(t), listed); diff != "" {
		t.Errorf("controllers (-in the program +in package providerset):\n%s", diff)
	}
	list, err := crds.All()
	if err != nil {
		t.Fatal(err)
	}
	var built []string
	for _, crd := range list {
		built = append(built, crd.Name)
	}
	slices.Sort(built)
	if diff := cmp.Diff(built, providerset.CRDs(providerset.All())); diff != "" {
		t.Errorf("CRDs (-of the build +in package providerset):\n%s", diff)
	}
}

// controllersOfTheProgram are the constants Name and templatesName of the packages that have a function Add.
func controllersOfTheProgram(t *testing.T) []string {
	t.Helper()
	names, adds := map[string][]string{}, map[string]bool{}
	for _, root := range []string{"../controllers", "../kubeadm", "../hosted", "../local", "../ssh"} {
		err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
			if err != nil {
				return err
			}
			for _, declared := range file.Decls {
				switch d := declared.(type) {
				case *ast.FuncDecl:
					adds[filepath.Dir(path)] = adds[filepath.Dir(path)] || d.Recv == nil && d.Name.Name == "Add"
				case *ast.GenDecl:
					for _, s := range d.Specs {
						if v, ok := s.(*ast.ValueSpec); ok && d.Tok == token.CONST && (v.Names[0].Name == "Name" || v.Names[0].Name == "templatesName") {
							name, err := strconv.Unquote(v.Values[0].(*ast.BasicLit).Value)
							if err != nil {
								return err
							}
							names[filepath.Dir(path)] = append(names[filepath.Dir(path)], name)
						}
					}
				}
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	var out []string
	for dir, declared := range names {
		if adds[dir] {
			out = append(out, declared...)
		}
	}
	slices.Sort(out)
	return out
}

// FL-01: managers of different providers do not wait for each other's lease, and that of the core has the name that the reference has.
func TestLeases(t *testing.T) {
	for want, providers := range map[string][]providerset.Name{
		"controller-leader-election-capi":                 {providerset.Core, providerset.BootstrapKubeadm},
		"controller-leader-election-bootstrap-kubeadm":    {providerset.BootstrapKubeadm, providerset.InfrastructureLocal},
		"controller-leader-election-infrastructure-local": {providerset.InfrastructureLocal, providerset.Simulated},
		"controller-leader-election-control-plane-hosted": {providerset.ControlPlaneHosted},
	} {
		cfg := Config{Policy: policy.Default()}
		cfg.Policy.Disable(providerset.Others(providers...)...)
		if got := cfg.lease(); got != want {
			t.Errorf("lease of %v is %s, want %s", providers, got, want)
		}
	}
}
