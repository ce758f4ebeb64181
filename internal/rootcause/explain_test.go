package rootcause

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func TestNothingIsWrong(t *testing.T) {
	g := memory(
		cluster(cond("Available", "True", "Available", "", 5), cond("Deleting", "False", "NotDeleting", "", 5), cond("ScalingUp", "False", "NotScalingUp", "", 5), cond("Custom", "False", "NotNeeded", "", 5)),
		thing("HostedControlPlane c", owner("Cluster c"), cond("StoreAvailable", "Unknown", "NotYetKnown", "", 5)),
		thing("LocalMachineTemplate t", noStatus()), thing("Secret c-ca", noStatus()),
	)
	for _, of := range []string{"Cluster c", "HostedControlPlane c", "LocalMachineTemplate t", "Secret c-ca", "Machine none"} {
		if c, found := Explain(g, refTo(of), now); found {
			t.Errorf("%s: %s", of, Summary(c))
		}
	}
}

// An object without a problem has the chain of what it owns, so that "explain cluster/x" is for the whole cluster.
func TestOfAHealthyOwner(t *testing.T) {
	g := memory(cluster(cond("Available", "True", "Available", "", 5)), thing("MachineDeployment c-workers", owner("Cluster c")), thing("MachineSet c-w", owner("MachineDeployment c-workers")),
		worker(bad("NodeHealthy", "NodeNotHealthy", "Kubelet stopped posting node status", 5)))
	if got := path(checkExplained(t, g, "Cluster c")); got != "Machine c-w1" {
		t.Error(got)
	}
}

func TestPolarity(t *testing.T) {
	gate := field([]any{map[string]any{"conditionType": "Drifted", "polarity": "Negative"}}, "spec", "availabilityGates")
	for name, tc := range map[string]struct {
		option option
		wrong  bool
	}{
		"negative gate, True":  {cond("Drifted", "True", "X", "x", 1), true},
		"negative gate, False": {cond("Drifted", "False", "X", "x", 1), false},
		"degraded":             {cond("Degraded", "True", "X", "x", 1), true},
		"unknown":              {cond("Any", "Unknown", "X", "", 1), true},
		"no message":           {cond("Any", "False", "X", "", 1), true},
	} {
		t.Run(name, func(t *testing.T) {
			if _, found := Explain(memory(thing("Cluster c", gate, tc.option)), refTo("Cluster c"), now); found != tc.wrong {
				t.Errorf("explained: %t", found)
			}
		})
	}
}

func TestSummary(t *testing.T) {
	for name, tc := range map[string]struct {
		link Link
		want string
	}{
		"message":        {Link{Object: refTo("Machine demo-x"), Message: "the machine\n  does not run", Since: now.Add(-5 * time.Minute)}, "Machine demo-x: the machine does not run (since 5m)"},
		"unknown time":   {Link{Object: refTo("Machine demo-x"), Reason: "X"}, "Machine demo-x: X"},
		"in the future":  {Link{Object: refTo("Machine demo-x"), Message: "m", Since: now.Add(time.Hour)}, "Machine demo-x: m"},
		"escape":         {Link{Object: refTo("Machine demo-x"), Message: "\x1b[2J gone"}, `Machine demo-x: \x1b[2J gone`},
		"only condition": {Link{Object: refTo("Machine demo-x"), Type: "Ready"}, "Machine demo-x: Ready"},
	} {
		if got := Summary(Chain{Links: []Link{tc.link}, Time: now}); got != tc.want {
			t.Errorf("%s: %q", name, got)
		}
	}
	long := Summary(Chain{Links: []Link{{Object: refTo("Machine m"), Message: strings.Repeat("ä ", 5000)}}})
	if len(long) > 2*maxSummary {
		t.Errorf("%d bytes", len(long))
	}
	if empty := (Chain{}); empty.NeedsUser() || empty.Root().Object.Kind != "" {
		t.Error("an empty chain needs nothing")
	}
}

// Objects of tenants cannot keep a search busy: cycles, long paths and wide graphs end.
func TestLimits(t *testing.T) {
	g := &Memory{}
	for i := range 2500 {
		next := fmt.Sprintf("Machine m%d", (i+1)%2500)
		g.Add(thing(fmt.Sprintf("Machine m%d", i), bad("Waits", "X", "Waiting for "+next+", Machine m0, Machine m1", i%50)))
		g.Add(thing(fmt.Sprintf("MachineSet s%d", i), owner("MachineDeployment wide"), bad("Waits", "X", strings.Repeat("Machine m1, MachineSet s1 ", 200), 1)))
	}
	g.Add(thing("MachineDeployment wide", bad("Waits", "X", "x", 1), cond("A", "False", strings.Repeat("x", 1<<20), strings.Repeat("y", 1<<20), 1)))
	c := checkExplained(t, g, "Machine m0")
	if len(c.Links) > maxDepth {
		t.Errorf("%d links", len(c.Links))
	}
	c = checkExplained(t, g, "MachineDeployment wide")
	for _, l := range c.Links {
		if len(l.Message) > maxMessage+10 {
			t.Errorf("a message of %d bytes", len(l.Message))
		}
	}
	s := newSearch(g, now)
	s.explain(refTo("MachineDeployment wide"))
	if len(s.done) > maxNodes {
		t.Errorf("%d nodes", len(s.done))
	}
}

// A link whose object is only owned has the problem that is not about another object.
func TestLeadingProblem(t *testing.T) {
	f := managementFaults()["M6 quota, and another Machine with a problem"]
	if c := checkExplained(t, memory(f.objects...), f.of); c.Links[0].Type != "ScalingUp" {
		t.Errorf("%+v", c.Links[0])
	}
}

func TestMentions(t *testing.T) {
	for message, want := range map[string][]mention{
		"Waiting for KubeadmConfig demo-x2c9f to create the data": {{"Waiting", "ns", "for"}, {"KubeadmConfig", "ns", "demo-x2c9f"}},
		"* Machines a, b.c: x":         {{"Machines", "ns", "a"}, {"Machine", "ns", "a"}, {"Machines", "ns", "b.c"}, {"Machine", "ns", "b.c"}},
		"Secret team/ca.":              {{"Secret", "team", "ca"}},
		"handler bcc.ext-t4: nothing":  {{"ExtensionConfig", "ns", "ext-t4"}},
		"Secret a/b/c and nothing":     nil,
		"lower machine x; Docker is /": {{"Docker", "ns", "is"}},
	} {
		got, _ := mentions(message, "ns")
		if diff := cmp.Diff(want, got, cmp.AllowUnexported(mention{})); diff != "" {
			t.Errorf("%q (-want +got):\n%s", message, diff)
		}
	}
}

func TestShellWord(t *testing.T) {
	for word, want := range map[string]string{"demo-x": "demo-x", "a b": "'a b'", "$(x)": "'$(x)'", "it's": `'it'\''s'`, "--all": "'--all'"} {
		if got := shellWord(word); got != want {
			t.Errorf("%s: got %s, want %s", word, got, want)
		}
	}
}

func TestProblems(t *testing.T) {
	g := memory(
		cluster(bad("WorkersAvailable", "NotAvailable", "* MachineDeployment c-workers: x", 3)), thing("MachineDeployment c-workers", owner("Cluster c"), bad("Available", "NotAvailable", "x", 3)),
		worker(bad("NodeHealthy", "NodeNotHealthy", "Kubelet stopped posting node status", 5)), thing("MachineSet c-w", owner("MachineDeployment c-workers")),
		thing("Cluster p", field(true, "spec", "paused")),
		thing("ExtensionConfig e", bad("Discovered", "ConnectionRefused", "nothing listens at x", 50)),
		thing("MachineDeployment d", unlabelled), thing("MachineSet s", unlabelled, owner("MachineDeployment d")),
		thing("Cluster busy", cond("RollingOut", "True", "RollingOut", "x", 5)),
	)
	for _, waiting := range []string{"MachineDeployment d", "MachineSet s"} {
		g.SetPlans(refTo(waiting), []Plan{{Waits: []Wait{{Reason: "WaitingForTemplate", Message: "LocalMachineTemplate x does not exist", Since: now.Add(-time.Hour)}}}})
	}
	var got []string
	for _, c := range Problems(g, []Ref{refTo("Machine c-w1"), refTo("MachineSet s"), refTo("MachineDeployment d"), refTo("Cluster busy"), refTo("Cluster c"), refTo("Cluster p"), refTo("ExtensionConfig e")}, now) {
		got = append(got, path(c))
	}
	want := []string{"Cluster c > MachineDeployment c-workers > Machine c-w1", "MachineDeployment d", "ExtensionConfig e", "Cluster p", "Cluster busy"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// The chain of a Cluster whose connection is lost shows more of the effect than the chain of one of its Machines.
func TestProblemsOfALostConnection(t *testing.T) {
	g := memory(cluster(bad("RemoteConnectionProbe", "ProbeFailed", "the API server at https://x/ does not respond", 9)), thing("MachineSet c-w", owner("MachineDeployment c-workers")),
		worker(cond("NodeHealthy", "Unknown", "ConnectionDown", "The workload cluster does not answer", 4)))
	for name, of := range map[string][]Ref{"Cluster first": {refTo("Cluster c"), refTo("Machine c-w1")}, "Machine first": {refTo("Machine c-w1"), refTo("Cluster c")}} {
		if got := Problems(g, of, now); len(got) != 1 || path(got[0]) != "Cluster c" {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// A root cause is listed once, with all Clusters that it affects, also if the chain begins with another object.
func TestAffectedClusters(t *testing.T) {
	extension := thing("ExtensionConfig e", bad("Discovered", "ConnectionRefused", "nothing listens at x", 50))
	g := memory(
		cluster(bad("WorkersAvailable", "NotAvailable", "* MachineDeployment c-workers: x", 3)),
		worker(bad("NodeHealthy", "NodeNotHealthy", "Kubelet stopped posting node status", 5)), thing("MachineSet c-w", owner("MachineDeployment c-workers")),
		thing("MachineDeployment c-workers", owner("Cluster c"), bad("Available", "NotAvailable", "x", 3)),
		thing("MachineHealthCheck h", field("c", "spec", "clusterName"), bad("RemediationAllowed", "TooManyUnhealthy", "3 of 3 Machines are unhealthy", 5)),
		extension,
	)
	for _, waiting := range []string{"Cluster a", "Cluster b"} {
		g.Add(thing(waiting))
		g.SetPlans(refTo(waiting), []Plan{{Waits: []Wait{{Reason: "WaitingForExtension", Message: "Waiting for the extension", On: []Ref{RefOf(extension)}}}}})
	}
	got := map[string][]string{}
	for _, c := range Problems(g, []Ref{refTo("Cluster b"), refTo("Cluster a"), refTo("Cluster c"), refTo("Machine c-w1"), refTo("MachineHealthCheck h"), refTo("ExtensionConfig e")}, now) {
		names := []string{}
		for _, ref := range c.Affects {
			names = append(names, ref.String())
		}
		got[c.Root().Object.String()] = names
	}
	want := map[string][]string{"Machine c-w1": {"Cluster c"}, "MachineHealthCheck h": {"Cluster c"}, "ExtensionConfig e": {"Cluster a", "Cluster b"}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// A remedy never has a placeholder left, whatever the object.
func TestPlaceholders(t *testing.T) {
	o := newObject(refTo("Machine m"), thing("Machine m"))
	var all []remedy
	for _, r := range remediesByReason {
		all = append(all, r)
	}
	for _, p := range phrases {
		all = append(all, p.remedy)
	}
	for _, r := range all {
		for _, text := range []string{fillText(r.text, o, ""), fillCommand(r.command, o, ""), fillText(r.late.text, o, ""), fillCommand(r.late.command, o, "")} {
			if strings.Contains(strings.ReplaceAll(text, "'{", ""), "{") {
				t.Errorf("%q", text)
			}
		}
	}
}

func TestMemory(t *testing.T) {
	secret := thing("Secret s", field("x", "data", "key"), annotated("kubectl.kubernetes.io/last-applied-configuration", "x"))
	g := memory(cluster(), worker(), secret)
	if u, _ := g.Get(refTo("Secret s")); u == nil || u.Object["data"] != nil || len(u.GetAnnotations()) > 0 || u.GetName() != "s" {
		t.Errorf("a Secret has data: %v", u)
	}
	if diff := cmp.Diff([]Ref{refTo("Secret s")}, g.Owned(refTo("Cluster c"))); diff != "" {
		t.Errorf("objects with the label and no owner (-want +got):\n%s", diff)
	}
	g.Add(worker(owner("MachineSet other")))
	if len(g.Owned(refTo("MachineSet other"))) != 1 || len(g.Owned(refTo("MachineSet c-w"))) != 1 {
		t.Error("owners of an updated object")
	}
	g.SetPlans(refTo("Machine c-w1"), []Plan{{Controller: "machine"}})
	g.Remove(refTo("Machine c-w1"))
	if _, found := g.Resolve("Machine", "ns", "c-w1"); found || len(g.Owned(refTo("MachineSet other")))+len(g.Plans(refTo("Machine c-w1"))) > 0 {
		t.Error("a removed object is found")
	}
	if _, found := g.Resolve("Secret", "ns", "s"); !found {
		t.Error("Secret s is not found")
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for range 100 {
			g.Add(worker())
			g.Remove(refTo("Machine c-w1"))
		}
	}()
	for range 100 {
		Explain(g, refTo("Cluster c"), now)
	}
	<-done
}

func TestHostileObjects(t *testing.T) {
	for name, content := range map[string]map[string]any{
		"empty":               {},
		"conditions as text":  {"status": map[string]any{"conditions": "x"}},
		"conditions of texts": {"status": map[string]any{"conditions": []any{"x", int64(1), nil}}},
		"spec as list":        {"spec": []any{"x"}, "status": "x"},
		"reference as text":   {"spec": map[string]any{"infrastructureRef": "x", "paused": "yes", "availabilityGates": "x", "topology": int64(1)}},
		"times":               {"status": map[string]any{"conditions": []any{map[string]any{"type": "A", "status": "False", "lastTransitionTime": "yesterday"}}}},
	} {
		t.Run(name, func(t *testing.T) {
			u := &unstructured.Unstructured{Object: content}
			u.SetAPIVersion("cluster.x-k8s.io/v1beta2")
			u.SetKind("Machine")
			u.SetNamespace("ns")
			u.SetName("m")
			c, found := Explain(memory(u), refTo("Machine m"), now)
			if found && c.Remedy.Text == "" {
				t.Errorf("no remedy: %+v", c)
			}
		})
	}
}

// BenchmarkExplain explains one Cluster with ten objects, of which a Machine has a problem.
func BenchmarkExplain(b *testing.B) {
	objects := []*unstructured.Unstructured{
		cluster(bad("WorkersAvailable", "NotAvailable", "* MachineDeployment c-workers: x", 3)), thing("LocalCluster c", owner("Cluster c")), thing("HostedControlPlane c", owner("Cluster c")),
		thing("MachineDeployment c-workers", owner("Cluster c"), bad("Available", "NotAvailable", "* Machine c-w1: Kubelet stopped posting node status", 3)),
		thing("MachineSet c-w", owner("MachineDeployment c-workers")),
		worker(bad("NodeHealthy", "NodeNotHealthy", "Kubelet stopped posting node status", 5)), localMachine(), config(),
	}
	g := memory(objects...)
	b.ReportAllocs()
	for b.Loop() {
		Explain(g, refTo("Cluster c"), now)
	}
}
