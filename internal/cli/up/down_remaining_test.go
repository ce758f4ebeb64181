package up

import (
	"bytes"
	"context"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	addonsv1 "sigs.k8s.io/cluster-api/api/addons/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/slipwayhq/slipway/internal/cli/management"
	"github.com/slipwayhq/slipway/internal/cli/term"
	"github.com/slipwayhq/slipway/internal/controlplane/datadir"
	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/test/testkit/apiserver"
)

// Who stops a manager for good hears what its finalizers keep: those of objects that no other object takes with it.
func TestLeft(t *testing.T) {
	server := apiserver.Start(t, apiserver.Options{Objects: apiserver.CRDs(t, "Cluster", "Machine", "ClusterResourceSet")})
	scheme, err := management.Scheme()
	if err != nil {
		t.Fatal(err)
	}
	c := server.Client(t, scheme)
	of := func(holder datadir.Holder) string {
		var said bytes.Buffer
		err := downFlags{}.checkRemaining(t.Context(), term.Env{Err: &said, Getenv: func(string) string { return "/nowhere" }}, datadir.State{Holder: holder})
		if err != nil {
			t.Error(err)
		}
		return said.String()
	}
	say := func(kubeconfig string) string { return of(datadir.Holder{Kubeconfig: kubeconfig}) }
	if got := say(server.Kubeconfig); got != "" {
		t.Errorf("nothing is there: %q", got)
	}
	cluster := &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "loc", Finalizers: []string{clusterv1.ClusterFinalizer}}}
	cluster.Spec.ControlPlaneRef = clusterv1.ContractVersionedObjectReference{APIGroup: "g.example.com", Kind: "K", Name: "n"}
	free := cluster.DeepCopy()
	free.Name, free.Finalizers = "free", nil
	set := &addonsv1.ClusterResourceSet{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "flannel", Finalizers: []string{addonsv1.ClusterResourceSetFinalizer}}}
	set.Spec.ClusterSelector.MatchLabels = map[string]string{"cni": "flannel"}
	set.Spec.Resources = []addonsv1.ResourceRef{{Name: "a", Kind: "ConfigMap"}}
	if err := c.Create(t.Context(), cluster); err != nil {
		t.Fatal(err)
	}
	owned := &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "m", Finalizers: []string{clusterv1.MachineFinalizer},
		OwnerReferences: []metav1.OwnerReference{{APIVersion: clusterv1.GroupVersion.String(), Kind: "Cluster", Name: "loc", UID: cluster.UID}}}}
	owned.Spec = clusterv1.MachineSpec{ClusterName: "loc", Bootstrap: clusterv1.Bootstrap{DataSecretName: new("s")}, InfrastructureRef: cluster.Spec.ControlPlaneRef}
	for _, create := range []func(context.Context) error{
		func(ctx context.Context) error { return c.Create(ctx, free) }, func(ctx context.Context) error { return c.Create(ctx, set) },
		func(ctx context.Context) error { return c.Create(ctx, owned) },
	} {
		if err := create(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if got, want := say(server.Kubeconfig), "still contains Cluster default/loc, ClusterResourceSet default/flannel: their finalizers"; !strings.Contains(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	for _, limited := range []datadir.Holder{{Namespace: "mine"}, {WatchFilter: "mine"}} {
		limited.Kubeconfig = server.Kubeconfig
		if got := of(limited); got != "" {
			t.Errorf("what is another manager's is said of %+v: %q", limited, got)
		}
	}
	held := datadir.State{Held: true, Holder: datadir.Holder{Kubeconfig: server.Kubeconfig, ManagerOf: "https://192.0.2.1"}}
	err = downFlags{delete: true}.checkRemaining(t.Context(), term.Env{Err: &bytes.Buffer{}, Getenv: func(string) string { return "/nowhere" }}, held)
	if fault.KindOf(err) != fault.Invalid || !strings.Contains(err.Error(), "cannot be listed") {
		t.Errorf("its kubeconfig names another cluster now: %v", err)
	}
	held.Holder.ManagerOf = server.Config.Host
	err = downFlags{delete: true}.checkRemaining(t.Context(), term.Env{Err: &bytes.Buffer{}, Getenv: func(string) string { return "/nowhere" }}, held)
	if fault.KindOf(err) != fault.Invalid || !strings.Contains(err.Error(), "Cluster default/loc, ClusterResourceSet default/flannel: delete them first") {
		t.Errorf("its data goes while it runs: %v", err)
	}
	if got := say("/nowhere/kubeconfig") + say(""); got != "" {
		t.Errorf("a cluster that cannot be asked: %q", got)
	}
}
