package machine

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
)

// observed reads the snapshot of a settled Machine in a changed world.
func observed(t *testing.T, m *clusterv1.Machine, w fakeWorkloads, extra ...client.Object) snapshot {
	t.Helper()
	ctl, _ := newController(world(m, extra...).Build(), w)
	s, err := ctl.observe(context.Background(), m)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestObserveNode(t *testing.T) { // MA-08, MA-20
	twin := node()
	twin.Name = "twin"
	other := node()
	other.Spec.ProviderID = "x://2"
	nameless := node()
	nameless.Spec.ProviderID = ""
	build := func(nodes ...client.Object) fakeWorkloads {
		return fakeWorkloads{client: fake.NewClientBuilder().WithScheme(newScheme()).WithObjects(nodes...).Build()}
	}
	cases := map[string]struct {
		reason string
		w      fakeWorkloads
		want   observedNode
	}{
		"found":      {"by provider ID", build(node()), observedNode{WasRead: true, Item: node()}},
		"none":       {"gone", build(), observedNode{WasRead: true}},
		"twins":      {"a provider ID has to be unique", build(node(), twin), observedNode{WasRead: true, Duplicates: []string{"n", "twin"}}},
		"name taken": {"a Node of the known name with another provider ID is another machine's", build(other), observedNode{WasRead: true, OtherProviderID: "x://2"}},
		"by name":    {"the Node that was found before has lost its provider ID", build(nameless.DeepCopy()), observedNode{WasRead: true, Item: nameless}},
		"down":       {"not connected is a fact, not an error", fakeWorkloads{down: true}, observedNode{Unreachable: true, Problem: "the workload cluster is not connected"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := observed(t, settled().Machine, tc.w).Node
			if got.Item != nil {
				got.Item.ResourceVersion, got.Item.TypeMeta = "", metav1.TypeMeta{}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

// The Node is looked for as soon as there is a connection, and is not followed before the control plane is initialized.
func TestObserveNodeBeforeInitialization(t *testing.T) { // CL-10, MA-08, MA-09
	unseen := func(s *snapshot) {
		s.Machine.Status.NodeRef.Name, s.Machine.Finalizers = "", []string{clusterv1.MachineFinalizer}
	}
	begins := &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "begins", UID: "begins"}}
	begins.Status.Initialization.InfrastructureProvisioned = ptr.To(true)
	inIt := func(s *snapshot) {
		s.Machine.Spec.ClusterName, s.Machine.Labels[clusterv1.ClusterNameLabel] = "begins", "begins"
		s.Machine.OwnerReferences[0].Name, s.Machine.OwnerReferences[0].UID = "begins", "begins"
	}
	for name, tc := range map[string]struct {
		reason  string
		s       snapshot
		w       fakeWorkloads
		want    observedNode
		watched int
	}{
		"there":         {"a control plane may be initialized only once its Machine has a Node", settled(unseen, inIt), fakeWorkloads{client: workloadOf(node()).Build()}, observedNode{WasRead: true, Item: node()}, 0},
		"not yet":       {"it is looked for again", settled(unseen, inIt), fakeWorkloads{client: workloadOf().Build()}, observedNode{WasRead: true}, 0},
		"not connected": {"what is waited for is the control plane", settled(unseen, inIt), fakeWorkloads{down: true}, observedNode{Waiting: waitsForInitialization}, 0},
		"initialized":   {"Nodes are followed", settled(unseen), fakeWorkloads{client: workloadOf(node()).Build()}, observedNode{WasRead: true, Item: node()}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			watched := 0
			tc.w.watched = &watched
			got := observed(t, tc.s.Machine, tc.w, begins.DeepCopy())
			if got.Node.Item != nil {
				got.Node.Item.ResourceVersion, got.Node.Item.TypeMeta = "", metav1.TypeMeta{}
			}
			if diff := cmp.Diff(tc.want, got.Node); diff != "" || watched != tc.watched {
				t.Errorf("%s: %d watches, want %d (-want +got):\n%s", tc.reason, watched, tc.watched, diff)
			}
			if after := decide(got).Recheck; (after == nodeRecheck) != (got.Node.WasRead && tc.watched == 0) {
				t.Errorf("%s: looks again after %s", tc.reason, after)
			}
		})
	}
}

// A Node that came while the deletion began is in the workload cluster, and not in the cache yet.
func TestObserveLastNode(t *testing.T) { // MD-15
	stale := func(nodes ...client.Object) fakeWorkloads {
		return fakeWorkloads{behind: true, client: fake.NewClientBuilder().WithScheme(newScheme()).WithObjects(nodes...).Build()}
	}
	deleted := func(s *snapshot) { deleted(s); s.Machine.Finalizers = []string{clusterv1.MachineFinalizer} }
	infraGone := func(s *snapshot) { s.Machine.Spec.InfrastructureRef.Name = "gone" }
	gone := func(s *snapshot) { infraGone(s); s.Machine.Spec.Bootstrap.ConfigRef.Name = "gone" }
	unseen := func(s *snapshot) { s.Machine.Status.NodeRef.Name = "" }
	noContract := crd("unknowns.i")
	noContract.SetLabels(nil)
	for name, tc := range map[string]struct {
		reason string
		s      snapshot
		w      fakeWorkloads
		want   string
	}{
		"late":                {"nothing else leads to it", settled(deleted, gone, unseen), stale(node()), "n"},
		"none":                {"", settled(deleted, gone, unseen), stale(), ""},
		"infrastructure left": {"there is time: it may still come", settled(deleted, unseen), stale(node()), ""},
		"bootstrap left":      {"the last look is the one that counts", settled(deleted, infraGone, unseen), stale(node()), ""},
		"unreadable":          {"there may be infrastructure", settled(deleted, gone, unseen, func(s *snapshot) { s.Machine.Spec.InfrastructureRef.Kind = "Unknown" }), stale(node()), ""},
		"no provider ID":      {"nobody knows which it would be", settled(deleted, gone, unseen, func(s *snapshot) { s.Machine.Spec.ProviderID = "" }), stale(node()), ""},
		"not deleted":         {"the cache will have it", settled(gone, unseen), stale(node()), ""},
		"goes with cluster":   {"MD-01", settled(deleted, gone, unseen, func(s *snapshot) { s.Machine.Spec.ClusterName = "none" }), stale(node()), ""},
	} {
		t.Run(name, func(t *testing.T) {
			got := ""
			if item := observed(t, tc.s.Machine, tc.w, noContract).Node.Item; item != nil {
				got = item.Name
			}
			if got != tc.want {
				t.Errorf("%s: Node %q, want %q", tc.reason, got, tc.want)
			}
		})
	}
}

func TestObserveOwners(t *testing.T) { // MA-14, MA-24
	controlled := func(kind, name string) []metav1.OwnerReference {
		return []metav1.OwnerReference{{APIVersion: clusterv1.GroupVersion.String(), Kind: kind, Name: name, UID: types.UID(name), Controller: ptr.To(true)}}
	}
	m := settled().Machine
	m.OwnerReferences = controlled("MachineSet", "ms")
	set := &clusterv1.MachineSet{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "ms", OwnerReferences: controlled("MachineDeployment", "md")}}
	md := &clusterv1.MachineDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "md"}}
	standalone := set.DeepCopy()
	standalone.OwnerReferences = nil
	for name, tc := range map[string]struct {
		owners []client.Object
		want   bool
	}{
		"both":                    {[]client.Object{set, md}, true},
		"standalone":              {[]client.Object{standalone, md}, false},
		"deployment not restored": {[]client.Object{set}, false},
		"none":                    {nil, false},
	} {
		s := observed(t, m.DeepCopy(), fakeWorkloads{client: workload().Build()}, tc.owners...)
		if (s.Set != nil) != tc.want || (s.Deployment != nil) != tc.want {
			t.Errorf("%s: MachineSet %v, MachineDeployment %v", name, s.Set, s.Deployment)
		}
	}
}

func TestObserveControlPlane(t *testing.T) { // MD-01
	m := settled(deleted).Machine
	m.Finalizers = []string{clusterv1.MachineFinalizer}
	cp := settled().Machine
	cp.Name, cp.Labels[clusterv1.MachineControlPlaneLabel] = "cp", ""
	got := observed(t, m, fakeWorkloads{client: workload().Build()}, cp).ControlPlane
	if diff := cmp.Diff(controlPlane{External: true, Others: 1}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// managed is a Machine that is being deleted, and its Cluster, which has a control plane.
func managed(kind, name string) (*clusterv1.Machine, *clusterv1.Cluster) {
	m, cluster := settled(deleted).Machine, settled().Cluster
	m.Finalizers = []string{clusterv1.MachineFinalizer}
	cluster.Name, m.Spec.ClusterName = "managed", "managed"
	cluster.Spec.ControlPlaneRef = clusterv1.ContractVersionedObjectReference{APIGroup: "i", Kind: kind, Name: name}
	return m, cluster
}

// A control plane that cannot be read is not one that is gone: Pods would be killed without a drain.
func TestUnreadableControlPlane(t *testing.T) { // MD-01
	m, cluster := managed("Unknown", "p")
	noContract := crd("unknowns.i")
	noContract.SetLabels(nil)
	s := observed(t, m, fakeWorkloads{client: workload().Build()}, cluster, noContract)
	if diff := cmp.Diff(controlPlane{Unreadable: true}, s.ControlPlane); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if skipsNodeDeletion(s) {
		t.Error("the Node is left to a cluster that may have a control plane")
	}
	s.ControlPlane.Unreadable = false
	if !skipsNodeDeletion(s) {
		t.Error("no control plane can be read where there is none")
	}
}

// A control plane that says something unreadable about who manages it is not one without a control plane.
func TestUnreadableExternalControlPlane(t *testing.T) { // MD-01
	m, cluster := managed("FooMachine", "odd")
	odd := foreign("apiVersion: i/v1\nkind: FooMachine\nmetadata: {name: odd, namespace: ns}\nstatus: {externalManagedControlPlane: 'yes'}")
	s := observed(t, m, fakeWorkloads{client: workload().Build()}, cluster, odd)
	if diff := cmp.Diff(controlPlane{Unreadable: true}, s.ControlPlane); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestNodeFindsItsMachine(t *testing.T) { // MA-09
	named := settled().Machine
	named.Generation = 0
	c := world(named).Build()
	ctl, _ := newController(c, fakeWorkloads{})
	cluster := client.ObjectKey{Namespace: "ns", Name: "c"}
	marked := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "x", Annotations: map[string]string{
		clusterv1.ClusterNameAnnotation: "c", clusterv1.ClusterNamespaceAnnotation: "ns", clusterv1.MachineAnnotation: "m"}}}
	strange := marked.DeepCopy()
	strange.Annotations[clusterv1.ClusterNameAnnotation] = "other"
	cases := map[string]struct {
		node *corev1.Node
		want int
	}{
		"by annotation":      {marked, 1},
		"by name":            {&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}}, 1},
		"by provider ID":     {&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "x"}, Spec: corev1.NodeSpec{ProviderID: "x://1"}}, 1},
		"of no Machine":      {&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "x"}}, 0},
		"of another cluster": {strange, 0},
	}
	for name, tc := range cases {
		got := ctl.ofNode(context.Background(), cluster, tc.node)
		if len(got) != tc.want || tc.want == 1 && got[0].NamespacedName != key {
			t.Errorf("%s: %v", name, got)
		}
	}
	if got := ctl.ofCluster(context.Background(), cluster); len(got) != 1 {
		t.Errorf("a cluster wakes its Machines: %v", got)
	}
}
