package plan

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/manager"
	"github.com/slipwayhq/slipway/internal/reconciler"
	"github.com/slipwayhq/slipway/internal/rootcause"
)

func TestText(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	full := manager.PlanRecord{
		Controller: "machine", Time: at, Actions: []string{"cordon Node n"}, Recheck: "1s", Errors: []string{"the Node says no"},
	}
	var p reconciler.Plan
	p.WaitFor("DrainingNode", "Draining Node n\n* Pod a").For("Node", "n").ForTime()
	p.WaitFor("Infra", "Waiting for FooMachine m").For("FooMachine", "m").ToChange("status.ready")
	p.WaitFor("Gone", "Waiting for Node n to be deleted").For("Node", "n").ToChange("")
	p.WaitFor("Secret", "Secret has no key").For("Secret", "other/ca").For("Secret", "b").UntilUserActs()
	full.Waits = p.Waits
	full.Waits[0].Since = at.Add(-time.Minute)
	for name, tc := range map[string]struct {
		plans manager.ObjectPlans
		want  string
	}{
		"idle": {manager.ObjectPlans{Kind: "ExtensionConfig", Name: "x", Plans: []manager.PlanRecord{{Controller: "extensionconfig", Time: at}}}, `ExtensionConfig x is as it should be.

ExtensionConfig x, reconciled 12s ago by controller extensionconfig

There was nothing to do and nothing to wait for.
`},
		"two controllers": {manager.ObjectPlans{Kind: "Cluster", Namespace: "team", Name: "demo", Plans: []manager.PlanRecord{
			{Controller: "cluster", Time: at}, {Controller: "topology", Time: at.Add(9 * time.Second), Waits: p.Waits[1:2]},
		}}, `Cluster team/demo is as it should be.

Cluster team/demo, reconciled 12s ago by controller cluster

There was nothing to do and nothing to wait for.

Cluster team/demo, reconciled 3s ago by controller topology

Waits
  Infra
    Waiting for FooMachine m
    Ends when status.ready changes: FooMachine m
`},
		"full": {manager.ObjectPlans{Kind: "Machine", Namespace: "ns", Name: "m", Plans: []manager.PlanRecord{full}}, `Machine ns/m is as it should be.

Machine ns/m, reconciled 12s ago by controller machine

Actions of that reconciliation
  cordon Node n

It did not succeed
  the Node says no

Waits
  DrainingNode, since 72s
    Draining Node n
    | * Pod a
    Ends without an action; concerns Node n
  Infra
    Waiting for FooMachine m
    Ends when status.ready changes: FooMachine m
  Gone
    Waiting for Node n to be deleted
    Ends when it is created, or deleted: Node n
  Secret
    Secret has no key
    Ends when a user acts on Secret other/ca, Secret b

The next reconciliation comes 1s after that one, or with the next event.
`},
	} {
		t.Run(name, func(t *testing.T) {
			var out strings.Builder
			s := explanation{ObjectPlans: tc.plans, now: at.Add(12 * time.Second)}
			s.ref = rootcause.Ref{Kind: tc.plans.Kind, Namespace: tc.plans.Namespace, Name: tc.plans.Name}
			if err := writeExplanation(&out, s); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, out.String()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestNextReconciliation(t *testing.T) {
	const soon = ", or with the next event."
	for recheck, want := range map[string]string{
		"1s":                    "The next reconciliation comes 1s after that one" + soon,
		"29.987654321s":         "The next reconciliation comes 30s after that one" + soon,
		"1h2m3.4s":              "The next reconciliation comes 1h2m3s after that one" + soon,
		"123.456789ms":          "The next reconciliation comes 120ms after that one" + soon,
		"1ns":                   "The next reconciliation comes 10ms after that one" + soon,
		"24h0m0s":               "The next reconciliation comes 24h0m0s after that one" + soon,
		"4379h56m19.958328645s": "The next reconciliation comes with the next event, or else in 182d.",
		"of another build":      "The next reconciliation comes of another build after that one" + soon,
	} {
		if got := nextReconciliation(recheck); got != want {
			t.Errorf("%s: got %q, want %q", recheck, got, want)
		}
	}
}

func TestRefusal(t *testing.T) {
	o := objectReference{schema.GroupKind{Kind: "Machine"}, client.ObjectKey{Namespace: "ns", Name: "m"}}
	for code, tc := range map[int]struct {
		kind fault.Kind
		says string
	}{
		http.StatusNotFound:           {fault.Gone, "there is no plan of Machine m in namespace ns: the manager at https://m"},
		http.StatusUnauthorized:       {fault.Invalid, "use a kubeconfig with a token"},
		http.StatusForbidden:          {fault.Invalid, "rejected the request: eve may not get it"},
		http.StatusServiceUnavailable: {fault.Unreachable, "returned status 503: eve may not get it"},
	} {
		err := refusal("https://m", o, code, "eve may not get it"+strings.Repeat(".", 1000))
		if fault.KindOf(err) != tc.kind || !strings.Contains(err.Error(), tc.says) || len(err.Error()) > 600 {
			t.Errorf("%d: %v", code, err)
		}
	}
}
