package machineset

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// TestWhoIsWoken: a Machine wakes its set; one that no one controls those that may adopt it.
func TestWhoIsWoken(t *testing.T) { // MS-03, MS-21
	other := newSet()
	other.Name, other.UID, other.Spec.Selector = "other", "other", metav1.LabelSelector{MatchLabels: map[string]string{"set": "y"}}
	fresh := newSet()
	fresh.Name, fresh.UID, fresh.Spec.Selector, fresh.Status.ObservedGeneration = "fresh", "fresh", other.Spec.Selector, 0
	deployed := newSet()
	ofDeployment()(&snapshot{Set: deployed})
	deployed.Name, deployed.UID, deployed.Spec.Selector = "deployed", "deployed", other.Spec.Selector
	w := newWorld(t, managementCluster(newSet(), other, fresh, deployed).Build())
	owned := member(snapshot{Set: newSet()}, "m").Machine
	controlled := orphan("m")
	controlled.OwnerReferences = []metav1.OwnerReference{{Kind: "FooPlane", Name: "p", UID: "p", Controller: new(true)}}
	named := func(requests []reconcile.Request) []string {
		var out []string
		for _, r := range requests {
			out = append(out, r.Name)
		}
		return out
	}
	ctx := context.Background()
	cases := map[string]struct {
		got, want []string
	}{
		"of a set":           {named(w.ctl.ofMachine(ctx, owned)), []string{"ms"}},
		"of nobody":          {named(w.ctl.ofMachine(ctx, orphan("m"))), []string{"ms"}},
		"of a control plane": {named(w.ctl.ofMachine(ctx, controlled)), nil},
		"a MachineDeployment": {named(w.ctl.ofDeployment(ctx, &clusterv1.MachineDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "md"},
			Spec: clusterv1.MachineDeploymentSpec{ClusterName: "c"}})), []string{"deployed"}},
		"a template":      {named(referrers().Requests(ctx, w.ctl.client, Name, settled().Infra.Object.Unstructured)), []string{"deployed", "fresh", "ms", "other"}},
		"a connection":    {named(w.ctl.ofCluster(ctx, client.ObjectKey{Namespace: "ns", Name: "c"})), []string{"fresh"}},
		"a control plane": {named(w.ctl.ofControlPlane(ctx, object(stablePlane))), []string{"deployed", "fresh", "ms", "other"}},
	}
	for name, tc := range cases {
		if diff := cmp.Diff(tc.want, tc.got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
