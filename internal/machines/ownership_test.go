package machines

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/slipwayhq/slipway/internal/machines/clone"
	"github.com/slipwayhq/slipway/internal/reconciler"
	"github.com/slipwayhq/slipway/internal/reconciler/ownership"
	"github.com/slipwayhq/slipway/sdk/contract"
)

func TestAwaitOwnership(t *testing.T) { // OR-01
	facts := func(change func(*ownership.Input)) ownership.Input {
		f := ownership.Input{Kind: "MachineSet", Name: "ms", Cluster: "c", ClusterExists: true, Parent: "MachineDeployment md", Owned: true}
		change(&f)
		return f
	}
	on := func(kind, name string) []reconciler.Subject { return []reconciler.Subject{{Kind: kind, Name: name}} }
	for name, tc := range map[string]struct {
		reason string
		facts  ownership.Input
		want   reconciler.Wait
	}{
		"no cluster": {"its creation ends it", facts(func(f *ownership.Input) { f.ClusterExists = false }),
			reconciler.Wait{On: on("Cluster", "c"), Until: "change"}},
		"no parent": {"the parent writes into the object itself", facts(func(f *ownership.Input) { f.Owned = false }),
			reconciler.Wait{On: on("MachineSet", "ms"), Field: "metadata.ownerReferences", Until: "change"}},
		"hidden": {"", facts(func(f *ownership.Input) { f.Hidden = []string{"Machine m"} }),
			reconciler.Wait{On: on("Machine", "m"), Until: reconciler.UntilUser}},
		"orphan": {"", facts(func(f *ownership.Input) {
			f.Children = []ownership.Child{{Kind: "Machine", Name: "m", Selected: true}}
		}), reconciler.Wait{On: on("Machine", "m"), Field: "metadata.ownerReferences", Until: "change"}},
		"foreign": {"", facts(func(f *ownership.Input) { f.Children = []ownership.Child{{Kind: "Machine", Name: "m"}} }),
			reconciler.Wait{On: on("Machine", "m"), Until: reconciler.UntilUser}},
		"not connected": {"", facts(func(*ownership.Input) {}),
			reconciler.Wait{On: on("Cluster", "c"), Field: "condition RemoteConnectionProbe", Until: "change"}},
		"strays": {"", facts(func(f *ownership.Input) {
			f.Workload = ownership.Workload{NodesRead: true, OrphanedNodes: []string{"n"}}
		}),
			reconciler.Wait{On: on("Node", "n"), Until: reconciler.UntilUser}},
	} {
		t.Run(name, func(t *testing.T) {
			var p reconciler.Plan
			AwaitOwnership(&p, ownership.Decide(tc.facts))
			got := p.Waits[0]
			got.Reason, got.Message = "", ""
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

func TestTemplateAwait(t *testing.T) {
	ref := clusterv1.ContractVersionedObjectReference{APIGroup: "g", Kind: "FooTemplate", Name: "t"}
	templates := clone.Templates{{}, {Ref: ref}, {Ref: ref, Object: contract.Object{Problem: "FooTemplate is not installed: install it"}}}
	var p reconciler.Plan
	for _, template := range templates.Unusable() {
		template.Await(&p, "WaitingForTemplate", "; no Machine can be created")
	}
	on := []reconciler.Subject{{Kind: "FooTemplate", Name: "t"}}
	want := []reconciler.Wait{
		{Reason: "WaitingForTemplate", Message: "FooTemplate t does not exist; no Machine can be created", On: on, Until: "change"},
		{Reason: "WaitingForTemplate", Message: "FooTemplate is not installed: install it; no Machine can be created", On: on, Until: reconciler.UntilUser},
	}
	if diff := cmp.Diff(want, p.Waits); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
