package plan

import (
	"strings"
	"testing"

	"github.com/slipwayhq/slipway/internal/plan"
	"github.com/slipwayhq/slipway/internal/providerset"
)

// An extension with the hooks of in-place updates is asked about MachineSets: the gate is one of the manager, and not known here.
func TestInPlaceUpdates(t *testing.T) {
	cfg, err := managerConfig()
	if err != nil || !cfg.Gates.Enabled(providerset.GateInPlaceUpdates) {
		t.Fatalf("no Machine is updated in place in a plan: %v", err)
	}
	p := &page{}
	writeUnanswered(p, &plan.Plan{Unanswered: []plan.UnknownResponse{
		{Hook: plan.CanUpdateMachineSet, Extension: "can.ext", Objects: []string{"default/workers-1"}, Means: "it is not known"},
	}})
	const want = "Not called: extension can.ext (CanUpdateMachineSet) for MachineSet default/workers-1: it is not known. Use --call-extensions to call it."
	if got := strings.TrimSpace(p.String()); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
