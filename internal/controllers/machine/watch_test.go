package machine

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"k8s.io/utils/ptr"

	"github.com/slipwayhq/slipway/sdk/contract"
)

// crowd is a world with Machines of other sets, deployments, clusters and namespaces beside the Machine.
func crowd(t *testing.T) (*controller, *[]string) {
	t.Helper()
	m := settled().Machine
	m.Generation = 0
	m.Labels[clusterv1.MachineSetNameLabel], m.Labels[clusterv1.MachineDeploymentNameLabel] = "ms", "md"
	var others []client.Object
	for i := range 20 {
		o := settled().Machine
		o.Generation, o.Name, o.UID = 0, fmt.Sprintf("o%d", i), ""
		o.Spec.ClusterName, o.Spec.ProviderID = "other", fmt.Sprintf("x://%d", i+100)
		o.Spec.InfrastructureRef.Name, o.Spec.Bootstrap.ConfigRef.Name = o.Name, o.Name
		others = append(others, o)
	}
	far := m.DeepCopy()
	far.Namespace = "far"
	lists := &[]string{}
	c := interceptor.NewClient(world(m, append(others, far)...).WithReturnManagedFields().Build(), interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			if _, ok := list.(*clusterv1.MachineList); ok {
				o := client.ListOptions{}
				o.ApplyOptions(opts)
				*lists = append(*lists, fmt.Sprint(o.FieldSelector))
			}
			return c.List(ctx, list, opts...)
		},
	})
	ctl, _ := newController(c, fakeWorkloads{client: workload().Build()})
	return ctl, lists
}

func TestWhoIsWoken(t *testing.T) { // MA-09, MA-14, CL-05
	ctl, _ := crowd(t)
	ctx := t.Context()
	referring := func(provider client.Object) []reconcile.Request {
		return referrers().Requests(ctx, ctl.client, Name, provider)
	}
	provider := func(text string) client.Object { return foreign("apiVersion: " + text + "}") }
	for name, tc := range map[string]struct {
		reason string
		got    []reconcile.Request
		want   bool
	}{
		"MachineSet":           {"MA-14", ctl.list(ctx, "ns", bySet, "ms"), true},
		"other MachineSet":     {"MA-14", ctl.list(ctx, "ns", bySet, "x"), false},
		"MachineDeployment":    {"MA-14: its revision decides", ctl.list(ctx, "ns", byDeployment, "md"), true},
		"cluster":              {"all of it, and nobody else", ctl.ofCluster(ctx, client.ObjectKey{Namespace: "ns", Name: "c"}), true},
		"infrastructure":       {"CL-05: before it has an owner", referring(provider("i/v1\nkind: FooMachine\nmetadata: {name: i, namespace: ns")), true},
		"bootstrap":            {"CL-05", referring(provider("b/v1\nkind: FooConfig\nmetadata: {name: b, namespace: ns")), true},
		"other infrastructure": {"CL-05: of nobody yet", referring(provider("i/v1\nkind: FooMachine\nmetadata: {name: z, namespace: ns")), false},
		"other kind":           {"CL-05: names are not enough", referring(provider("b/v1\nkind: FooConfig\nmetadata: {name: i, namespace: ns")), false},
	} {
		var want []reconcile.Request
		if tc.want {
			want = []reconcile.Request{{NamespacedName: key}}
		}
		if diff := cmp.Diff(want, tc.got); diff != "" {
			t.Errorf("%s: %s (-want +got):\n%s", name, tc.reason, diff)
		}
	}
}

// TestLongNamesWake: a name that is too long for a label stands in it as a hash, by which its Machines are found.
func TestLongNamesWake(t *testing.T) { // MA-14, MS-07
	long := strings.Repeat("s", 64)
	m := settled().Machine
	m.Generation = 0
	m.Labels[clusterv1.MachineSetNameLabel] = contract.LabelValue(long)
	ctl, _ := newController(world(m).WithReturnManagedFields().Build(), fakeWorkloads{client: workload().Build()})
	set := &clusterv1.MachineSet{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: long}}
	if diff := cmp.Diff([]reconcile.Request{{NamespacedName: key}}, ctl.ofOwner(bySet)(t.Context(), set)); diff != "" {
		t.Errorf("the Machines of a MachineSet with a long name (-want +got):\n%s", diff)
	}
	set.Name = long[1:]
	if got := ctl.ofOwner(bySet)(t.Context(), set); got != nil {
		t.Errorf("a MachineSet of another name wakes %v", got)
	}
}

// changed returns an object before and after a change.
func changed[O client.Object](before O, change func(O)) (client.Object, client.Object) {
	after := before.DeepCopyObject().(O)
	change(after)
	return before, after
}

func TestOwnerMatters(t *testing.T) { // MA-14, MA-24
	set := func(change func(*clusterv1.MachineSet)) (client.Object, client.Object) {
		return changed(&clusterv1.MachineSet{}, change)
	}
	deployment := func(change func(*clusterv1.MachineDeployment)) (client.Object, client.Object) {
		return changed(&clusterv1.MachineDeployment{}, change)
	}
	type change struct {
		reason        string
		want          bool
		before, after client.Object
	}
	wakes := func(reason string, want bool) func(before, after client.Object) change {
		return func(before, after client.Object) change { return change{reason, want, before, after} }
	}
	replicas := ptr.To(int32(200))
	for name, tc := range map[string]change{
		"revision": wakes("MA-14", true)(deployment(func(d *clusterv1.MachineDeployment) {
			d.SetAnnotations(map[string]string{clusterv1.RevisionAnnotation: "2"})
		})),
		"set's revision": wakes("MA-14", true)(set(func(s *clusterv1.MachineSet) { s.SetAnnotations(map[string]string{clusterv1.RevisionAnnotation: "2"}) })),
		"adopted": wakes("judged by another", true)(set(func(s *clusterv1.MachineSet) {
			s.OwnerReferences = []metav1.OwnerReference{{UID: "md", Controller: ptr.To(true)}}
		})),
		"set's template":     wakes("what it was made from", true)(set(func(s *clusterv1.MachineSet) { s.Spec.Template.Spec.Version = "v1.36.4" })),
		"template":           wakes("what is asked for", true)(deployment(func(d *clusterv1.MachineDeployment) { d.Spec.Template.Spec.Version = "v1.36.4" })),
		"rollout.after":      wakes("DP-10", true)(deployment(func(d *clusterv1.MachineDeployment) { d.Spec.Rollout.After = metav1.NewTime(now) })),
		"replicas":           wakes("nothing to the Machines that there are", false)(deployment(func(d *clusterv1.MachineDeployment) { d.Spec.Replicas = replicas })),
		"set's replicas":     wakes("nothing to the Machines that there are", false)(set(func(s *clusterv1.MachineSet) { s.Spec.Replicas = replicas })),
		"status":             wakes("counts", false)(deployment(func(d *clusterv1.MachineDeployment) { d.Status.Replicas = replicas })),
		"what is propagated": wakes("MS-08: the Machine changes too", false)(set(func(s *clusterv1.MachineSet) { s.Spec.Template.Labels = map[string]string{"a": "b"} })),
	} {
		if got := ownerMatters().Update(event.UpdateEvent{ObjectOld: tc.before, ObjectNew: tc.after}); got != tc.want {
			t.Errorf("%s wakes Machines: %t, but %s", name, got, tc.reason)
		}
	}
}

// TestNobodyLooksAtEverything: what a pass costs does not grow with the Machines of other clusters.
func TestNobodyLooksAtEverything(t *testing.T) {
	ctl, lists := crowd(t)
	m := &clusterv1.Machine{}
	if err := ctl.client.Get(t.Context(), key, m); err != nil {
		t.Fatal(err)
	}
	deleted(&snapshot{Machine: m})
	if _, err := ctl.observe(t.Context(), m); err != nil {
		t.Fatal(err)
	}
	ctl.ofNode(t.Context(), client.ObjectKey{Namespace: "ns", Name: "c"}, node())
	if len(*lists) == 0 {
		t.Fatal("nothing was listed")
	}
	for _, selector := range *lists {
		if selector == "" || selector == "<nil>" {
			t.Errorf("a list of every Machine: %v", *lists)
		}
	}
}
