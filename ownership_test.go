package slipway

import (
	"fmt"
	"go/ast"
	"go/constant"
	"go/types"
	"maps"
	"slices"
	"strings"
	"testing"

	"golang.org/x/tools/go/packages"

	"github.com/slipwayhq/slipway/test/testkit"
)

const tables = module + "internal/condition."

// otherKind is the kind of the objects with the conditions in a declaration, if it is not the kind of the package's
// controller. types lists condition types that the code computes.
type otherKind struct {
	kind  string
	types []string
}

// otherKinds returns the exceptions by package and declaration.
func otherKinds() map[string]otherKind {
	const none = "" // only for the projection to v1beta1
	return map[string]otherKind{
		"internal/reconciler/reporting.pauseTable":                 {kind: "every kind"},
		"internal/reconciler/reporting.Conditions":                 {kind: "Cluster", types: []string{"TopologyReconciled"}},
		"internal/reconciler/reporting.reconciledTable":            {kind: "every kind"},
		"internal/machines.setConditions":                          {kind: "Machine"},
		"internal/controllers/machinepool.setUpToDate":             {kind: "Machine"},
		"internal/controllers/machinehealthcheck.mark":             {kind: "Machine", types: []string{"HealthCheckSucceeded", "OwnerRemediated", "ExternallyRemediated"}},
		"internal/kubeadm/controlplane/workload.MachineConditions": {kind: "Machine"},
		"internal/kubeadm/controlplane.machineConditions":          {kind: "Machine"},
		"internal/kubeadm/controlplane.componentConditions":        {kind: none}, // written by HealthConditions
		"internal/kubeadm/controlplane.v1beta1Only":                {kind: none},
		"internal/kubeadm/controlplane.legacyStatus":               {kind: none},
		"internal/controllers/cluster.withLegacyReady":             {kind: none},
		"internal/controllers/machineset.v1beta1Only":              {kind: none},
		"internal/controllers/machineset.deprecated":               {kind: none},
	}
}

// sharedConditions returns the conditions with several writers, each with the reason why only one of them writes the
// condition of an object. The reasons are part of docs/ownership.md.
func sharedConditions() map[string]string {
	return map[string]string{
		"Cluster TopologyReconciled": "the driver makes it False with the reason Paused while it keeps the topology controller from reconciling",
		"Cluster Deleting":           "the driver says that the deletion waits for the end of a pause, which keeps the controller from reconciling",
		"Machine UpToDate":           "of a Machine of a MachineDeployment the Machine controller; of others that of their owner, a MachineSet (package machines), a KubeadmControlPlane or a MachinePool",
		"Machine OwnerRemediated":    "a MachineHealthCheck makes it False where the owner has to remediate; the owner, a MachineSet (package machines) or a KubeadmControlPlane, reports how that proceeds",
	}
}

// row is a condition of a kind and one of its writers.
type row struct{ kind, condition, writer string }

// TestConditionOwners checks that each condition of a kind has one writer, and that docs/ownership.md lists the writers in
// the tables of conditions. To update the page: go test -run TestConditionOwners . -update
func TestConditionOwners(t *testing.T) {
	found, other, unused := map[row]bool{}, otherKinds(), otherKinds()
	for _, p := range load(t) {
		dir := shortPath(p.PkgPath)
		if dir == "internal/condition" {
			continue
		}
		kinds := controlled(p)
		for _, file := range p.Syntax {
			for _, decl := range file.Decls {
				for name, typed := range declaredTypes(p, decl) {
					place := dir + "." + name
					of, is := other[place]
					delete(unused, place)
					switch {
					case is && of.kind == "":
						continue
					case is:
						kinds = []string{of.kind}
						typed = append(typed, of.types...)
					case len(kinds) != 1:
						t.Errorf("%s has conditions, and the package has controllers of %v: add their kind to otherKinds", place, kinds)
						continue
					}
					for _, condition := range typed {
						if condition == computed && len(of.types) == 0 {
							t.Errorf("%s computes the type of a condition: add the types to otherKinds", place)
						} else if condition != computed {
							found[row{kinds[0], condition, dir}] = true
						}
					}
					kinds = controlled(p)
				}
			}
		}
	}
	for place := range unused {
		t.Errorf("%s has no conditions: remove it from otherKinds", place)
	}
	testkit.CompareGolden(t, "docs/ownership.md", page(t, found))
}

// computed stands for a condition type that is not a constant.
const computed = "(computed)"

// declaredTypes returns the types of the conditions in the rows of a declaration, by the name of the declaration.
func declaredTypes(p *packages.Package, decl ast.Decl) map[string][]string {
	out := map[string][]string{}
	note := func(name string, n ast.Node) {
		ast.Inspect(n, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.CompositeLit:
				if strings.HasPrefix(typeName(p, n), tables+"Row[") {
					out[name] = append(out[name], typeOf(p, n))
				}
			case *ast.Ident:
				if f, ok := p.TypesInfo.Uses[n].(*types.Func); ok && f.Pkg() != nil && f.Pkg().Path()+"."+f.Name() == tables+"Ready" {
					out[name] = append(out[name], "Ready")
				}
			}
			return true
		})
	}
	switch d := decl.(type) {
	case *ast.FuncDecl:
		note(d.Name.Name, d)
	case *ast.GenDecl:
		for _, spec := range d.Specs {
			if v, ok := spec.(*ast.ValueSpec); ok {
				note(v.Names[0].Name, v)
			}
		}
	}
	return out
}

func typeOf(p *packages.Package, row *ast.CompositeLit) string {
	for _, e := range row.Elts {
		kv, ok := e.(*ast.KeyValueExpr)
		if !ok || kv.Key.(*ast.Ident).Name != "Type" {
			continue
		}
		if v := p.TypesInfo.Types[kv.Value].Value; v != nil {
			return constant.StringVal(v)
		}
	}
	return computed
}

// controlled returns the kinds of the controllers in a package.
func controlled(p *packages.Package) []string {
	found := map[string]bool{}
	for _, file := range p.Syntax {
		ast.Inspect(file, func(n ast.Node) bool {
			lit, ok := n.(*ast.CompositeLit)
			if !ok || !strings.HasPrefix(typeName(p, lit), module+"internal/reconciler.Controller[") {
				return true
			}
			named, ok := p.TypesInfo.TypeOf(lit).(*types.Named)
			if !ok {
				return true
			}
			if pointer, ok := named.TypeArgs().At(0).(*types.Pointer); ok {
				found[pointer.Elem().(*types.Named).Obj().Name()] = true
			}
			return true
		})
	}
	return slices.Sorted(maps.Keys(found))
}

// page returns the content of docs/ownership.md.
func page(t *testing.T, found map[row]bool) string {
	writers := map[[2]string][]string{}
	for r := range found {
		key := [2]string{r.kind, r.condition}
		writers[key] = append(writers[key], r.writer)
	}
	if len(writers) < 60 {
		t.Fatalf("found only %d conditions: the tables have another form", len(writers))
	}
	shared := sharedConditions()
	out := "# Who writes which condition\n\nEach condition of a kind has one writer. This page is made from the tables of conditions in the code\n" +
		"(`go test -run TestConditionOwners . -update`).\n\n| Kind | Condition | Written by |\n|---|---|---|\n"
	keys := slices.SortedFunc(maps.Keys(writers), func(a, b [2]string) int { return strings.Compare(a[0]+" "+a[1], b[0]+" "+b[1]) })
	for _, key := range keys {
		by, name := slices.Sorted(slices.Values(writers[key])), key[0]+" "+key[1]
		reason, isShared := shared[name]
		delete(shared, name)
		switch {
		case isShared && len(by) == 1:
			t.Errorf("%s has only one writer: remove it from sharedConditions", name)
		case len(by) > 1 && !isShared:
			t.Errorf("%s is written by %s: a condition must have one writer", name, strings.Join(by, " and "))
		}
		if isShared {
			reason = " (" + reason + ")"
		}
		out += fmt.Sprintf("| %s | %s | `%s`%s |\n", key[0], key[1], strings.Join(by, "`, `"), reason)
	}
	for name := range shared {
		t.Errorf("%s does not exist: remove it from sharedConditions", name)
	}
	return out
}
