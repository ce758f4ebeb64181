package slipway

import (
	"flag"
	"go/ast"
	"go/constant"
	"go/types"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"golang.org/x/tools/go/packages"
)

// namesFile lists every name that users, dashboards and other programs depend on. Names may be added but never removed.
const namesFile = "hack/names.txt"

var (
	namedConstant = regexp.MustCompile(`(Reason|Condition)$`)
	key           = regexp.MustCompile(`^[a-z0-9.-]+\.(x-k8s\.io|slipway\.dev)/[A-Za-z0-9._-]+$`)
	metricName    = regexp.MustCompile(`^(slipway|capi|capd)_[a-z0-9_]+$`)
	slipwayName   = regexp.MustCompile(`^slipway-[a-z0-9-]+[a-z0-9]$`)
)

// TestNamesStay checks that no controller, metric, field manager, condition, reason, label, annotation, finalizer or flag
// is removed or renamed, even if the code that defines it moves. To add new names: go test -run TestNamesStay . -update
func TestNamesStay(t *testing.T) {
	names := publicNames(t)
	if update := flag.Lookup("update"); update != nil && update.Value.String() == "true" {
		if err := os.WriteFile(namesFile, []byte(strings.Join(names, "\n")+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	text, err := os.ReadFile(namesFile)
	if err != nil {
		t.Fatal(err)
	}
	recorded := strings.Split(strings.TrimSpace(string(text)), "\n")
	if len(recorded) < 1000 {
		t.Fatalf("%s has only %d names: the file is incomplete", namesFile, len(recorded))
	}
	for _, name := range recorded {
		if _, found := slices.BinarySearch(names, name); !found {
			t.Errorf("%s is in %s but no longer in the code: users depend on it", name, namesFile)
		}
	}
}

// publicNames returns a sorted line "kind value" for each public name in the code.
func publicNames(t *testing.T) []string {
	t.Helper()
	found := map[string]bool{}
	for _, p := range load(t) {
		for _, file := range p.Syntax {
			ast.Inspect(file, func(n ast.Node) bool {
				switch n := n.(type) {
				case *ast.Ident:
					addConstant(found, p, n)
				case *ast.BasicLit:
					addLiteral(found, p, n)
				case *ast.CallExpr:
					addArguments(found, p, n)
				}
				return true
			})
		}
	}
	return slices.Sorted(maps.Keys(found))
}

// addConstant records a condition, a reason or a controller by the name of its constant.
func addConstant(found map[string]bool, p *packages.Package, id *ast.Ident) {
	c, ok := p.TypesInfo.ObjectOf(id).(*types.Const)
	if !ok || c.Pkg() == nil || c.Val().Kind() != constant.String {
		return
	}
	if !strings.HasPrefix(c.Pkg().Path()+"/", module) && !strings.HasPrefix(c.Pkg().Path(), "sigs.k8s.io/cluster-api/api") {
		return
	}
	if kind := namedConstant.FindString(c.Name()); kind != "" {
		found[strings.ToLower(kind)+" "+constant.StringVal(c.Val())] = true
	}
	if c.Name() == "Name" || c.Name() == "templatesName" { // the controllers of templates are in the packages of their providers
		found["controller "+constant.StringVal(c.Val())] = true
	}
}

// addLiteral records the name of a metric, a label, annotation or finalizer, and a field manager or other name that starts with
// "slipway-".
func addLiteral(found map[string]bool, p *packages.Package, lit *ast.BasicLit) {
	v := p.TypesInfo.Types[lit].Value
	if v == nil || v.Kind() != constant.String {
		return
	}
	switch text := constant.StringVal(v); {
	case key.MatchString(text):
		found["key "+text] = true
	case metricName.MatchString(text):
		found["metric "+text] = true
	case slipwayName.MatchString(text):
		found["name "+text] = true
	}
}

// addArguments records reasons that are passed as arguments, and flags of commands.
func addArguments(found map[string]bool, p *packages.Package, call *ast.CallExpr) {
	signature, ok := p.TypesInfo.TypeOf(call.Fun).(*types.Signature)
	if !ok {
		return
	}
	receiver := ""
	if sel, ok := call.Fun.(*ast.SelectorExpr); ok {
		if f, ok := p.TypesInfo.Uses[sel.Sel].(*types.Func); ok && f.Pkg() != nil && f.Signature().Recv() != nil {
			receiver = f.Pkg().Path()
		}
	}
	for n, argument := range call.Args {
		v := p.TypesInfo.Types[argument].Value
		if v == nil || v.Kind() != constant.String || n >= signature.Params().Len() {
			continue
		}
		switch parameter := signature.Params().At(n).Name(); {
		case receiver == "github.com/spf13/pflag" && parameter == "name":
			found["flag "+constant.StringVal(v)] = true
		case strings.EqualFold(parameter, "reason") && constant.StringVal(v) != "":
			found["reason "+constant.StringVal(v)] = true
		}
	}
}
