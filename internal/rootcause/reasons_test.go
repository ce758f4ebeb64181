package rootcause

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// reasonCatalog has the reasons in the source code of Slipway's controllers and in the API of Cluster API, each with a
// text or a constant that shows what it means.
type reasonCatalog struct {
	constants map[string]string
	found     map[string]string
	// recorded has the reasons in hack/names.txt, by which reasons are found that reach a condition on other ways.
	recorded map[string]bool
}

// controllerFolders are the folders whose waits, conditions and errors reach users through conditions and plans. Errors
// of commands are printed with their remedy.
func controllerFolders() []string {
	return []string{
		"controllers", "kubeadm", "hosted", "local", "simulated", "hook", "workload", "kube", "machines", "reference", "reconciler",
		"topology", "condition", "rollout", "snapshots", "policy", "controlplane", "plan", "ssh", "bundle", "infrastructure", "jobs",
	}
}

// collectReasons reads the reasons from the source code.
func collectReasons(t *testing.T) map[string]string {
	t.Helper()
	c := reasonCatalog{constants: map[string]string{}, found: map[string]string{}, recorded: recordedReasons(t)}
	api := parseFolder(t, moduleFolder(t, "sigs.k8s.io/cluster-api/api"))
	root := filepath.Join("..", "..")
	own := append(parseFolder(t, filepath.Join(root, "api")), parseFolder(t, filepath.Join(root, "sdk", "contract"))...)
	var controllers []*ast.File
	for _, folder := range controllerFolders() {
		controllers = append(controllers, parseFolder(t, filepath.Join(root, "internal", folder))...)
	}
	for _, file := range slices.Concat(api, own, controllers) {
		c.readConstants(file)
	}
	for _, file := range controllers {
		ast.Inspect(file, func(n ast.Node) bool { c.visit(n); return true })
	}
	return c.found
}

func (c *reasonCatalog) readConstants(file *ast.File) {
	for _, decl := range file.Decls {
		d, ok := decl.(*ast.GenDecl)
		if !ok || d.Tok != token.CONST {
			continue
		}
		for _, spec := range d.Specs {
			s := spec.(*ast.ValueSpec)
			for i, value := range s.Values {
				if text := c.value(value); text != "" {
					c.constants[s.Names[i].Name] = text
					c.addConstant(s.Names[i].Name, text)
				}
			}
		}
	}
}

// addConstant records the value of a constant whose name marks a reason.
func (c *reasonCatalog) addConstant(name, value string) {
	if (strings.HasSuffix(name, "Reason") || strings.HasPrefix(strings.ToLower(name), "reason")) && !strings.Contains(name, "V1Beta1") {
		c.add(value, name)
	}
}

// value returns the value of a literal or a known constant, or an empty string.
func (c *reasonCatalog) value(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.BasicLit:
		text, err := strconv.Unquote(e.Value)
		if e.Kind == token.STRING && err == nil {
			return text
		}
	case *ast.SelectorExpr:
		return c.constants[e.Sel.Name]
	case *ast.Ident:
		return c.constants[e.Name]
	}
	return ""
}

// visit records the reasons of waits, conditions and errors.
func (c *reasonCatalog) visit(n ast.Node) {
	if lit, ok := n.(*ast.BasicLit); ok && c.recorded[c.value(lit)] && c.value(lit) != "Request" { // Request is also a word of other strings
		c.add(c.value(lit), "a literal")
	}
	call, ok := n.(*ast.CallExpr)
	if !ok || len(call.Args) < 2 {
		return
	}
	sel, ok := call.Fun.(*ast.SelectorExpr)
	if !ok {
		return
	}
	pkg, _ := sel.X.(*ast.Ident)
	switch name := sel.Sel.Name; {
	case name == "WaitFor", pkg != nil && pkg.Name == "condition" && (name == "False" || name == "Unknown" || name == "TrueBecause"):
		c.add(c.value(call.Args[0]), name+": "+c.value(call.Args[1]))
	case pkg != nil && pkg.Name == "fault" && name == "New" && len(call.Args) > 2:
		c.add(c.value(call.Args[1]), "error: "+c.value(call.Args[2]))
	}
}

func (c *reasonCatalog) add(reason, example string) {
	if reason == "" || strings.Contains(reason, " ") || reason[0] < 'A' || reason[0] > 'Z' {
		return
	}
	if old, known := c.found[reason]; !known || len(example) > len(old) && !strings.Contains(example, ": ") || strings.Contains(example, ": ") {
		c.found[reason] = example
	}
}

// recordedReasons returns the reasons in hack/names.txt, which lists the public names of Slipway.
func recordedReasons(t *testing.T) map[string]bool {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "hack", "names.txt"))
	if err != nil {
		t.Fatal(err)
	}
	recorded := map[string]bool{}
	for line := range strings.Lines(string(text)) {
		if reason, is := strings.CutPrefix(strings.TrimSpace(line), "reason "); is {
			recorded[reason] = true
		}
	}
	return recorded
}

func parseFolder(t *testing.T, dir string) []*ast.File {
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

func moduleFolder(t *testing.T, module string) string {
	t.Helper()
	out, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", module).Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(out))
}

// TestEveryReasonHasARemedy checks that every reason of conditions, waits and errors that a user can meet has a remedy or
// reports a normal state.
func TestEveryReasonHasARemedy(t *testing.T) {
	found := collectReasons(t)
	if len(found) < 400 {
		t.Fatalf("only %d reasons found: the calls have another form", len(found))
	}
	table := reasonTable()
	for _, reason := range slices.Sorted(maps.Keys(found)) {
		_, known := table[reason]
		isFine := slices.Contains(noProblem(), reason)
		switch {
		case !known && !isFine:
			t.Errorf("%s (%s) has no remedy: add it to a table in remedies_*.go, or to noProblem", reason, found[reason])
		case known && isFine:
			t.Errorf("%s has a remedy and is listed in noProblem", reason)
		}
	}
}

// TestRemediesAreForExistingReasons checks that each reason is in one row, and exists.
func TestRemediesAreForExistingReasons(t *testing.T) {
	// Reasons of this package, and of conditions that are computed.
	others := []string{reasonNoController, reasonPlanFailed, "ForeignFinalizer"}
	found, seen := collectReasons(t), map[string]bool{}
	for _, groups := range [][]group{commonRemedies(), machineRemedies(), planeRemedies(), topologyRemedies(), localRemedies(), snapshotRemedies(), sshRemedies()} {
		for _, g := range groups {
			if g.text == "" || strings.HasSuffix(g.text, ".") || !g.automatic && g.command == "" {
				t.Errorf("%v: a remedy needs a text without a period, and a command if a user has to act: %q", g.reasons, g.text)
			}
			for _, reason := range g.reasons {
				if seen[reason] {
					t.Errorf("%s is in two rows", reason)
				}
				seen[reason] = true
				if _, exists := found[reason]; !exists && !slices.Contains(others, reason) {
					t.Errorf("%s exists nowhere", reason)
				}
			}
		}
	}
}

// noProblem lists the reasons of conditions and events that need no remedy, because they report a normal state.
func noProblem() []string {
	return []string{
		"Answering", "Applied",
		"BootstrapTokenCreated", "BootstrapTokenReplaced", "CircuitClosed", "ConnectAllowed", "ControlPlaneInitialized", "ControlPlaneStarted", "DataSecretCreated", "EtcdLeaderMoved",
		"EtcdMemberRemoved", "HookCompleted", "InfrastructureReady", "LoadBalancerStarted", "MachineCreated", "MachineDeleted", "MachineKnown", "MachineMarkedUnhealthy",
		"MachineRunning", "MachineStarted", "MachinesCreated", "NetworkCreated", "NetworkDeleted", "RecoveryNotNeeded", "RemovedFromPool", "ReplacingMachines", "Resized",
		"SnapshotRestored", "SnapshotTaken", "Succeeded", "SuccessfulAdopt", "SuccessfulCreate", "SuccessfulDelete", "SuccessfulDrainNode", "SuccessfulHandOver",
		"SuccessfulScale", "SuccessfulSetNodeRef", "SuccessfulSetNodeRefs", "Supported", "TopologyCreate", "TopologyDelete", "TopologyUpdate", "UpdatingInPlace", "Valid",
		"WorkloadChanged", "Available", "BootstrapSucceeded", "DataSecretProvided", "DeletionCompleted", "Discovered", "HealthCheckSucceeded", "Healthy",
		"Initialized", "NoClusters", "NoDeprecatedHooks", "NoReplicas", "NoWorkers", "NodeHealthy", "NodeReady", "NotDeleting", "NotNeeded", "NotPaused",
		"NotRemediating", "NotRollingOut", "NotScalingDown", "NotScalingUp", "NotUpdating", "NotYetKnown", "PatchVersion", "ProbeSucceeded", "Provisioned", "Ready",
		"ReconcileSucceeded", "Recovered", "RefVersionsUpToDate", "RemediationAllowed", "Restored", "Running", "Set", "Suspended", "UpToDate", "VariablesReady", "Claimed", "Cleaned",
		"Connected", "ClaimDropped", "Held", "ProvidedByControlPlane", "HostClaimed", "HostPrepared", "HostReleased", "InUse", "Passed", "ContainerRuntimeFound", "NoContainerRuntime",
	}
}
