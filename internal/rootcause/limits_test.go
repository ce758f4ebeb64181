package rootcause

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// A condition dated in the future once ended the process, or hid a problem of a user for ever.
func TestFutureTimes(t *testing.T) {
	for name, minutes := range map[string]int{"a clock that is slow": -1, "a tenant's date": -60 * 24 * 365 * 70} {
		for _, reason := range []string{"Foreign", "NodeNotHealthy", "NotReady", "Foreign2"} {
			c := checkExplained(t, memory(thing("Machine m", bad("Any", reason, "", minutes), field("x", "status", "phase"))), "Machine m")
			if c.Root().Since.After(now) || c.Remedy.Text == "" {
				t.Errorf("%s, %s: %+v", name, reason, c)
			}
			if minutes < -5 && (!c.Root().Since.IsZero() || reason == "NodeNotHealthy" && !c.NeedsUser()) {
				t.Errorf("%s, %s: a distant time is not unknown: %+v", name, reason, c)
			}
		}
	}
	u := thing("Machine m", deleted(-10, "machine.cluster.x-k8s.io"))
	if c := checkExplained(t, memory(u), "Machine m"); c.Root().Since.After(now) {
		t.Errorf("%+v", c)
	}
	checkExplained(t, memory(thing("FooMachine m", owner("Machine m"), noStatus(), func(u *unstructured.Unstructured) {
		u.SetCreationTimestamp(*newTime(now.Add(time.Hour)))
	})), "FooMachine m")
	if lowerFirst("") != "" {
		t.Error("lowerFirst")
	}
}

// Messages of one object name at most some objects, and a Reader reads at most some objects one by one.
func TestRequestsAreLimited(t *testing.T) {
	var options []option
	for i := range 90 {
		var names []string
		for j := range 30 {
			names = append(names, fmt.Sprintf("Secret s-%d-%d", i, j))
		}
		options = append(options, bad(fmt.Sprintf("C%d", i), "X", strings.Join(names, " "), 1))
	}
	a := &api{objects: things(thing("Machine m", options...))}
	r := NewReader(t.Context(), ReaderOptions{Client: a, Mapper: mapper(), Namespace: "ns"})
	checkExplained(t, r, "Machine m")
	if len(a.requests) > maxResolved+10 {
		t.Errorf("%d requests for one object", len(a.requests))
	}
	for i := range 2 * maxGets {
		r.Get(refTo(fmt.Sprintf("Secret x%d", i)))
	}
	if len(a.requests) > maxGets+10 || len(r.Limits()) != 2 {
		t.Errorf("%d requests, %v", len(a.requests), r.Limits())
	}
}

func TestReaderPages(t *testing.T) {
	a := brokenCluster(7)
	a.pages = 3
	r := NewReader(t.Context(), ReaderOptions{Client: a, Mapper: mapper(), Namespace: "ns"})
	if got := len(r.Owned(refTo("MachineSet c-w"))); got != 7 || len(r.Limits()) > 0 {
		t.Errorf("%d Machines, %v", got, r.Limits())
	}
	before := len(a.requests)
	r.Owned(refTo("MachineSet c-w"))
	r.Get(refTo("Machine none"))
	if len(a.requests) != before {
		t.Errorf("a kind is listed twice: %v", a.requests[before:])
	}
}

// An error of one kind does not end the search.
func TestUnreadableKind(t *testing.T) {
	a := brokenCluster(2)
	a.failing = map[string]error{"LocalMachine": errors.New("conversion webhook failed")}
	r := NewReader(t.Context(), ReaderOptions{Client: a, Mapper: mapper(), Namespace: "ns"})
	if got := path(checkExplained(t, r, "Machine m1")); got != "Machine m1" || r.Err() != nil {
		t.Errorf("%s, %v", got, r.Err())
	}
	if _, found := r.Get(Ref{"infrastructure.bar.dev", "BarMachine", "ns", "x"}); found {
		t.Error("a kind that is not installed is found")
	}
	if diff := cmp.Diff([]string{"BarMachine.infrastructure.bar.dev (not installed)", "LocalMachine.infrastructure.slipway.dev (conversion webhook failed)"}, r.Unreadable()); diff != "" {
		t.Error(diff)
	}
}

// A kind of another project does not hide the kind of the same name.
func TestKindsOfTheSameName(t *testing.T) {
	r := NewReader(t.Context(), ReaderOptions{Client: brokenCluster(2), Mapper: mapper(), Namespace: "ns"})
	if _, found := r.Get(Ref{"infrastructure.bar.dev", "LocalMachine", "ns", "m1"}); found {
		t.Error("a kind that is not installed is found")
	}
	if _, found := r.Get(refTo("LocalMachine m1")); !found {
		t.Error("LocalMachine m1 is not found")
	}
}

// A search that ends at a limit records it, also if it finds nothing.
func TestLimitsAreRecorded(t *testing.T) {
	names := func(n int) string {
		var out []string
		for i := range n {
			out = append(out, fmt.Sprintf("s-%d", i))
		}
		return "Secrets " + strings.Join(out, ", ")
	}
	handlers := func(n int) (out string) {
		for i := range n {
			out += fmt.Sprintf("handler h.e-%d ", i)
		}
		return out
	}
	line := func(n int) (out []*unstructured.Unstructured) {
		for i := range n {
			out = append(out, thing(fmt.Sprintf("FooMachine m%d", i), unlabelled, infrastructure(fmt.Sprintf("FooMachine m%d", i+1))))
		}
		return out
	}
	owned := func(sets, machines int) []*unstructured.Unstructured {
		out := []*unstructured.Unstructured{thing("MachineDeployment m0")}
		for i := range sets {
			set := fmt.Sprintf("MachineSet s%d", i)
			out = append(out, thing(set, owner("MachineDeployment m0")))
			for j := range machines {
				out = append(out, thing(fmt.Sprintf("Machine s%d-%d", i, j), owner(set)))
			}
		}
		return out
	}
	for name, tc := range map[string]struct {
		objects []*unstructured.Unstructured
		of      string
		want    []string
	}{
		"few objects":          {owned(2, 20), "MachineDeployment m0", nil},
		"few names":            {things(thing("FooMachine m0", bad("A", "X", names(5), 1))), "FooMachine m0", nil},
		"just enough":          {things(thing("FooMachine m0", bad("A", "X", strings.ReplaceAll(names(maxResolved)[len("Secrets "):], "s-", "Secret s-"), 1), bad("B", "X", "no name", 1))), "FooMachine m0", nil},
		"just enough handlers": {things(thing("FooMachine m0", bad("A", "X", handlers(maxMentions), 1))), "FooMachine m0", nil},
		"handlers":             {things(thing("FooMachine m0", bad("A", "X", handlers(maxMentions+1), 1))), "FooMachine m0", []string{"Only 32 names in the messages of an object were looked up"}},
		"just enough matches":  {things(thing("FooMachine m0", bad("A", "X", strings.Repeat("Secret s, ", maxMatches), 1))), "FooMachine m0", nil},
		"just enough objects":  {owned(4, 499)[:maxNodes], "MachineDeployment m0", nil},
		"names":                {things(thing("FooMachine m0", bad("A", "X", names(40), 1))), "FooMachine m0", []string{"Only 32 names in the messages of an object were looked up"}},
		"depth":                {line(20), "FooMachine m0", []string{"Causes that are more than 16 objects away were not considered"}},
		"children":             {owned(1, 600), "MachineDeployment m0", []string{"Only 500 objects that an object names, refers to or owns were considered"}},
		"objects":              {owned(5, 450), "MachineDeployment m0", []string{"Only 2000 objects beneath the object were considered", "Only 2000 objects were considered for one object"}},
	} {
		g := memory(tc.objects...)
		Explain(g, refTo(tc.of), now)
		Beneath(g, refTo(tc.of))
		if diff := cmp.Diff(tc.want, g.Limits()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// The limits of an object are forgotten when it is explained again or gone, those of other objects are not.
func TestLimitsOfTheLastSearch(t *testing.T) {
	many := func(name string) *unstructured.Unstructured {
		message := "Secrets"
		for i := range 2 * maxResolved {
			message += fmt.Sprintf(" s-%d,", i)
		}
		return thing(name, bad("A", "X", message, 1))
	}
	g := memory(many("FooMachine a"), many("FooMachine b"))
	explain := func(want int) {
		t.Helper()
		Explain(g, refTo("FooMachine a"), now)
		if got := g.Limits(); len(got) != want {
			t.Errorf("%v, want %d limits", got, want)
		}
	}
	Explain(g, refTo("FooMachine b"), now)
	g.Add(thing("FooMachine b", bad("A", "X", "x", 1)))
	Explain(g, refTo("FooMachine b"), now)
	explain(1)
	Explain(g, refTo("FooMachine b"), now)
	if len(g.Limits()) != 1 {
		t.Error("the limits of another object are forgotten")
	}
	g.Add(thing("FooMachine a", bad("A", "X", "x", 1)))
	explain(0)
	g.Add(many("FooMachine a"))
	explain(1)
	g.Remove(refTo("FooMachine a"))
	if len(g.Limits()) > 0 {
		t.Error("an object that is gone has limits")
	}
}

// A 403 in another namespace does not hide the kind in the namespace of the Reader.
func TestForbiddenElsewhere(t *testing.T) {
	a := brokenCluster(2)
	a.forbidden = "LocalMachine"
	r := NewReader(t.Context(), ReaderOptions{Client: a, Mapper: mapper(), Namespace: "ns"})
	elsewhere := refTo("LocalMachine x")
	elsewhere.Namespace = "other"
	r.Get(elsewhere)
	a.forbidden = ""
	if _, found := r.Get(refTo("LocalMachine m1")); !found {
		t.Error("LocalMachine m1 is not found")
	}
}

// The explanation of an object does not depend on the objects that were explained before.
func TestResultsDoNotDependOnTheOrder(t *testing.T) {
	f := planeFaults()["Machine waits for the infrastructure of its Cluster"]
	all := []Ref{refTo("Cluster c"), refTo("Machine c-w1"), refTo("KubeadmConfig c-w1")}
	for _, order := range [][]int{{0, 1, 2}, {1, 0, 2}, {2, 1, 0}, {0, 2, 1}} {
		s := newSearch(memory(f.objects...), now)
		for _, i := range order {
			got, _ := s.explain(all[i])
			want, _ := Explain(memory(f.objects...), all[i], now)
			if path(got) != path(want) {
				t.Errorf("%v: %s: got %s, want %s", order, all[i], path(got), path(want))
			}
		}
	}
}

// Messages name objects, but commands that delete take names from the object and its owners, and no other namespace is read.
func TestMessagesDoNotSteer(t *testing.T) {
	victim := thing("Machine victim", bad("NodeHealthy", "NodeNotHealthy", "x", 90))
	victim.SetNamespace("other")
	g := memory(victim, thing("LocalMachine l", owner("Machine own"), bad("MachineProvisioned", "MachineRemoved", "The machine was removed from the host: Machine other/victim, Machine victim, Node n", 5)),
		thing("KubeadmControlPlane k", unlabelled, bad("EtcdClusterHealthy", "EtcdMemberUnhealthy", "Machine victim", 5)))
	c := checkExplained(t, g, "LocalMachine l")
	if path(c) != "LocalMachine l" || c.Remedy.Command != "slipway kubectl delete machine own -n ns" {
		t.Errorf("%s: %+v", path(c), c.Remedy)
	}
	if c := checkExplained(t, g, "KubeadmControlPlane k"); c.Remedy.Command != "" || strings.Contains(c.Remedy.Text, "{") {
		t.Errorf("%+v", c.Remedy)
	}
}

func TestProblemsPreferTheOwnCluster(t *testing.T) {
	target := worker(bad("NodeHealthy", "NodeNotHealthy", "Kubelet stopped posting node status", 5))
	g := memory(cluster(), target, thing("MachineSet c-w", owner("Cluster c")),
		thing("Cluster evil", bad("A", "X", "Cluster evil2", 5)), thing("Cluster evil2", bad("A", "X", "Machine c-w1", 5)))
	got := Problems(g, []Ref{refTo("Cluster evil"), refTo("Machine c-w1"), refTo("Cluster c")}, now)
	if len(got) != 1 || got[0].Links[0].Object != refTo("Machine c-w1") && got[0].Links[0].Object != refTo("Cluster c") {
		for _, c := range got {
			t.Error(path(c))
		}
	}
}

func TestOverdue(t *testing.T) {
	for name, tc := range map[string]struct {
		object *unstructured.Unstructured
		user   bool
		remedy string
	}{
		"in time":           {thing("Machine m", bad("A", "NodeDoesNotExist", "", 14)), false, "The Node appears"},
		"overdue":           {thing("Machine m", bad("A", "NodeDoesNotExist", "", 16)), true, "slipway logs node m -n ns"},
		"default":           {thing("Machine m", bad("A", "WaitingForInfrastructure", "", 60)), true, "Read the log of the controller"},
		"any time":          {thing("Cluster c", bad("A", "LifecycleHookBlocking", "", 600)), false, "its owner decides"},
		"progress":          {thing("MachineDeployment d", cond("RollingOut", "True", "RollingOut", "", 600)), false, "working on it"},
		"lone summary":      {thing("FooMachine m", bad("Ready", "InstanceStopped", "The instance was stopped", 1)), true, "The provider of FooMachine"},
		"severity error":    {thing("FooMachine m", bad("Any", "Waiting", "", 1), severity("Error")), true, "The provider of FooMachine"},
		"severity info":     {thing("FooMachine m", bad("Any", "Strange", "", 1), severity("Info")), false, "working on it"},
		"finalizer at once": {thing("FooMachine m", deleted(1, "x.example.com/f")), false, "after its cleanup"},
		"deleting":          {worker(deleted(1, "machine.cluster.x-k8s.io"), field("boom", "status", "failureMessage"), cond("Deleting", "True", "Draining", "stopped posting node status", 1)), false, "continues"},
		"webhook first":     {thing("Cluster c", bad("A", "ReconcileError", "failed calling webhook: dial tcp: connection refused", 10)), true, "Repair the server of the webhook that the message names"},
		"reason first":      {thing("LocalCluster c", bad("A", "SubnetTaken", "the probe did not respond", 10)), true, "other address ranges"},
		"no handler":        {thing("LocalCluster c", bad("A", "Odd", "nothing listens at 1.2.3.4", 10)), true, "Correct what the message names"},
	} {
		c := checkExplained(t, memory(tc.object), strings.Replace(RefOf(tc.object).String(), "/", " ", 1))
		if c.NeedsUser() != tc.user || !strings.Contains(c.Remedy.Text+c.Remedy.Command, tc.remedy) {
			t.Errorf("%s: user %t, %+v", name, c.NeedsUser(), c.Remedy)
		}
	}
}

// An overdue wait does not hide a known task of a user.
func TestOverdueIsNoTask(t *testing.T) {
	g := memory(thing("MachineSet c-w"), thing("Machine a", owner("MachineSet c-w"), bad("A", "NodeDoesNotExist", "", 90)), thing("Machine b", owner("MachineSet c-w"), bad("A", "DrainHeld", "", 9)))
	if got := path(checkExplained(t, g, "MachineSet c-w")); got != "Machine b" {
		t.Error(got)
	}
}

func severity(text string) option {
	return func(u *unstructured.Unstructured) {
		list, _, _ := unstructured.NestedSlice(u.Object, "status", "conditions")
		list[0].(map[string]any)["severity"] = text
		_ = unstructured.SetNestedSlice(u.Object, list, "status", "conditions")
	}
}

// A MachineHealthCheck is the remedy only if the replacement of the Machine ends the problem.
func TestHealthChecksDoNotHideCauses(t *testing.T) {
	broken := func(message string, minutes int) *Memory {
		return memory(cluster(), healthCheck(), worker(bad("InfrastructureReady", "NotReady", "x", minutes)), config(), localMachine(bad("BootstrapExecSucceeded", "BootstrapFailed", message, minutes)))
	}
	c := checkExplained(t, broken("slipway: runcmd ended with code 7", 2), "Machine c-w1")
	if !c.NeedsUser() || !strings.Contains(c.Remedy.Text, "Correct the command") || !strings.Contains(c.Remedy.Text, "MachineHealthCheck c-workers replaces it in 8m") {
		t.Errorf("%+v", c.Remedy)
	}
	c = checkExplained(t, broken("The machine c-w1 was removed from the host", 30), "Machine c-w1")
	if !c.NeedsUser() || !strings.Contains(c.Remedy.Text, "should have replaced it") {
		t.Errorf("overdue: %+v", c.Remedy)
	}
}

// A warning is no problem, and does not lead to other objects.
func TestWarnings(t *testing.T) {
	warning := cond("BootstrapExecSucceeded", "True", "BootstrapSucceeded", "The machine does not apply snap of the bootstrap data", 5)
	c := checkExplained(t, memory(thing("LocalMachine a", warning)), "LocalMachine a")
	if !c.IsWarning() || c.NeedsUser() {
		t.Errorf("%+v", c)
	}
	c = checkExplained(t, memory(thing("LocalMachine a", warning, bad("A", "DiskFull", "", 5))), "LocalMachine a")
	if c.IsWarning() || c.Root().Reason != "DiskFull" {
		t.Errorf("%+v", c)
	}
}

// Objects of kinds without a working controller are reported only if one is expected and nothing is paused.
func TestAbandoned(t *testing.T) {
	custom := thing("FooMachine x", noStatus())
	custom.SetAPIVersion("example.com/v1")
	g := memory(custom, thing("Cluster c", field(true, "spec", "paused")), thing("FooMachine y", owner("Machine m"), noStatus()))
	if c, found := Explain(g, RefOf(custom), now); found {
		t.Errorf("an object with the label of a Cluster: %s", Summary(c))
	}
	if got := path(checkExplained(t, g, "FooMachine y")); got != "FooMachine y > Cluster c" {
		t.Error(got)
	}
}

// The beginning of a wait is not later than the transition of its condition, although the manager was restarted.
func TestSinceSurvivesARestart(t *testing.T) {
	g := memory(thing("Machine m", bad("A", "DrainHeld", "held by x", 50)))
	g.SetPlans(refTo("Machine m"), []Plan{{Waits: []Wait{{Reason: "DrainHeld", Message: "held by x", User: true, Since: now.Add(-minute)}}}})
	if got := now.Sub(checkExplained(t, g, "Machine m").Root().Since); got != 50*minute {
		t.Error(got)
	}
}

func TestWithFlags(t *testing.T) {
	for command, want := range map[string]string{
		"slipway kubectl delete machine m -n ns":        "slipway kubectl delete machine m -n ns --kubeconfig k --context x --data-dir d",
		"slipway get kubeconfig c -n ns > c.kubeconfig": "slipway get kubeconfig c -n ns --kubeconfig k --kubeconfig-context x --data-dir d > c.kubeconfig",
		"slipway recover controlplane c -n ns":          "slipway recover controlplane c -n ns --kubeconfig k --kubeconfig-context x --data-dir d",
		"slipway logs node m -n ns":                     "slipway logs node m -n ns --data-dir d",
		"slipway hosts check h -n ns":                   "slipway hosts check h -n ns --kubeconfig k --kubeconfig-context x --data-dir d",
		"slipway init --help":                           "slipway init --help",
		"slipway status":                                "slipway status",
		"docker ps --all":                               "docker ps --all",
		"":                                              "",
	} {
		if got := WithFlags(command, " --kubeconfig k --kubeconfig-context x --data-dir d"); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	if got := WithFlags("slipway kubectl get nodes", ""); got != "slipway kubectl get nodes" {
		t.Error(got)
	}
}

// Commands of remedies use the kubectl of Slipway, which can be given the management cluster.
func TestCommandsSelectTheManagementCluster(t *testing.T) {
	var commands []string
	for _, r := range remediesByReason {
		commands = append(commands, r.command, r.late.command)
	}
	for _, p := range phrases {
		commands = append(commands, p.command)
	}
	slices.Sort(commands)
	for _, c := range slices.Compact(commands) {
		if strings.HasPrefix(c, "kubectl") {
			t.Errorf("%q", c)
		}
	}
}
