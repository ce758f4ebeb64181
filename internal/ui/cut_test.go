package ui

import (
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/slipwayhq/slipway/internal/rootcause"
	"github.com/slipwayhq/slipway/test/mirrortest"
)

func TestCut(t *testing.T) {
	for name, tc := range map[string]struct {
		cut  cut
		one  string
		want string
	}{
		"complete": {cut{3, 3}, "cluster", ""},
		"empty":    {cut{}, "cluster", ""},
		"cut":      {cut{1500, 2000}, "cluster", "1500 of 2000 clusters are shown."},
		"plural":   {cut{150, 700}, "entry", "150 of 700 entries are shown."},
	} {
		if got := tc.cut.Text(tc.one); got != tc.want {
			t.Errorf("%s: %q, want %q", name, got, tc.want)
		}
	}
	if shown, c := limit([]int{1, 2, 3}, 2); len(shown) != 2 || c != (cut{2, 3}) {
		t.Errorf("%v, %+v", shown, c)
	}
	about := func(of rootcause.Ref) bool { return of.Kind == "Machine" }
	events, c := eventsOf([]event{{Of: rootcause.Ref{Kind: "Machine"}}, {Of: rootcause.Ref{Kind: "Other"}}, {Of: rootcause.Ref{Kind: "Machine"}}}, about, 1)
	if len(events) != 1 || c != (cut{1, 2}) {
		t.Errorf("%v, %+v", events, c)
	}
}

// A page that shows only a part of a list has the numbers, and how to find the rest.
func TestListsThatAreCut(t *testing.T) {
	s := testServer(t, mirrortest.Start(t, mirrortest.Cluster("team", "good")), nil)
	source := s.sources[0]
	for i := range maxRows + 7 {
		source.store.Put(mirrortest.Objects(fmt.Sprintf(`
apiVersion: cluster.x-k8s.io/v1beta2
kind: Cluster
metadata: {namespace: team-%04d, name: c, creationTimestamp: "2026-05-04T11:00:00Z"}
status: {phase: Provisioned, conditions: [{type: TopologyReconciled, status: "False", reason: VariablesInvalid, message: m, lastTransitionTime: "2026-05-04T11:00:00Z"}]}
`, i))[0])
	}
	for i := range maxRelated + 5 {
		source.store.Put(ownedMachine(fmt.Sprintf("owned-%03d", i)))
	}
	source.refresh()
	contains(t, "fleet", page(t, s, source.url(), 200), "1500 of 1508 clusters are shown. Narrow the list with the filter", "500 of 1508 values are shown. Use the text filter")
	contains(t, "needs", page(t, s, "/needs", 200), "1508 clusters cannot continue until a user acts", "1500 of 1508 clusters are shown. Filter the fleet", "slipway get clusters -A --problems")
	contains(t, "object", page(t, s, source.url()+"object/cluster.x-k8s.io/Machine/team/good-md-a-1", 200), "200 of 207 objects are shown.")
}

// ownedMachine returns a LocalMachine of the Machine good-md-a-1.
func ownedMachine(name string) *unstructured.Unstructured {
	return mirrortest.Objects(fmt.Sprintf(`
apiVersion: infrastructure.slipway.dev/v1alpha1
kind: LocalMachine
metadata:
  namespace: team
  name: %s
  ownerReferences: [{apiVersion: cluster.x-k8s.io/v1beta2, kind: Machine, name: good-md-a-1, uid: u, controller: true}]
`, name))[0]
}
