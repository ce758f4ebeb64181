package plan

import (
	"errors"
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
		ref: refOf("Machine", "m"), now: explainedAt, Chain: &c, PlansMissing: "no manager", Unreadable: []string{"Foo"},
		Others:   []chain{{rootcause.Chain{Links: []rootcause.Link{{Object: refOf("Cluster", "c"), Reason: "X"}}, Remedy: rootcause.Remedy{Text: "Wait", Automatic: true}}, false}},
		Upcoming: []rootcause.Action{{Object: refOf("Machine", "m"), Remedy: rootcause.Remedy{Text: "MachineHealthCheck w replaces it in 4m", Automatic: true}}},
	}
	want := `Machine ns/m is not as it should be

  Machine m, since 4m
    InfrastructureReady: LocalMachine m:
    * stopped
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

Objects that you may not read, or that are not installed, are not considered: Foo
`
	var out strings.Builder
	if err := writeExplanation(&out, s); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// An idle controller is not described as "nothing to do" without a word about the problem.
func TestIdleControllerOfABrokenObject(t *testing.T) {
	c := stoppedMachine()
	s := explanation{ref: refOf("Machine", "m"), now: explainedAt, Chain: &c, ObjectPlans: manager.ObjectPlans{Plans: []manager.PlanRecord{{Controller: "machine", Time: explainedAt}}}}
	var out strings.Builder
	if err := writeExplanation(&out, s); err != nil || strings.Contains(out.String(), "There was nothing") || !strings.Contains(out.String(), "described above") {
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
