package machineset

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/slipwayhq/slipway/internal/condition"
	"github.com/slipwayhq/slipway/test/testkit"
)

// bareSet is a MachineSet as a user creates it.
func bareSet() *clusterv1.MachineSet {
	set := newSet()
	set.Finalizers, set.Labels, set.OwnerReferences, set.Status = nil, nil, nil, clusterv1.MachineSetStatus{}
	return set
}

// TestScaleUpAndDown: every write fails once, and each run ends with the same Machines.
func TestScaleUpAndDown(t *testing.T) { // MS-01, MS-02, MS-04, MS-05, MS-07, MS-25, OR-01, FD-01
	one := bareSet()
	one.Spec.Replicas, one.Spec.Template.Spec.FailureDomain = new(int32(1)), "zone-a"
	testkit.FailEachWrite(t, func() *fake.ClientBuilder { return managementCluster(one.DeepCopy()) }, func(t *testing.T, c client.WithWatch) {
		w := newWorld(t, c)
		w.settle()
		w.isWhole(1)
		set := w.set()
		if !cmp.Equal(set.Finalizers, []string{clusterv1.MachineSetFinalizer}) || set.Labels[clusterv1.ClusterNameLabel] != "c" ||
			len(set.OwnerReferences) != 1 || set.OwnerReferences[0].UID != "cluster" || set.OwnerReferences[0].Controller != nil {
			t.Errorf("finalizers %v, labels %v, owners %v", set.Finalizers, set.Labels, set.OwnerReferences)
		}
		w.change(set, func() { set.Spec.Replicas = new(int32(2)); set.Generation++ })
		w.settle()
		w.isWhole(2)
		w.change(set, func() { set.Spec.Replicas = new(int32(1)); set.Generation++ })
		w.settle()
		w.finish()
		w.settle()
		if got := len(w.machines()); got != 1 || *w.set().Status.Replicas != 1 {
			t.Errorf("%d Machines after scaling down, status %d", got, *w.set().Status.Replicas)
		}
		w.twice(func() error { return c.Delete(t.Context(), set) })
		w.settle()
		w.finish()
		w.settle()
		if got := len(w.machines()); got != 0 {
			t.Errorf("%d Machines after the deletion", got)
		}
		if err := c.Get(t.Context(), client.ObjectKeyFromObject(set), set); client.IgnoreNotFound(err) != nil || err == nil {
			t.Errorf("the MachineSet is still there: %v", err)
		}
	})
}

// isWhole checks that there are n Machines with all that belongs to them, and no more.
func (w *world) isWhole(n int) {
	w.t.Helper()
	machines, infra, bootstrap := w.machines(), w.clones("i", "FooMachine"), w.clones("b", "FooConfig")
	if len(machines) != n || len(infra) != n || len(bootstrap) != n {
		w.t.Fatalf("%d Machines, %d FooMachines, %d FooConfigs, want %d", len(machines), len(infra), len(bootstrap), n)
	}
	for i, m := range machines {
		owner := metav1.GetControllerOf(&m)
		want := map[string]string{"set": "x", clusterv1.ClusterNameLabel: "c", clusterv1.MachineSetNameLabel: "ms"}
		if owner == nil || owner.UID != "ms" || !cmp.Equal(m.Labels, want) || m.Annotations["note"] != "1" ||
			!cmp.Equal(m.Finalizers, []string{clusterv1.MachineFinalizer}) {
			w.t.Errorf("Machine %s: owners %v, labels %v, annotations %v, finalizers %v", m.Name, m.OwnerReferences, m.Labels, m.Annotations, m.Finalizers)
		}
		if m.Spec.InfrastructureRef.Kind != "FooMachine" || m.Spec.InfrastructureRef.Name != m.Name || m.Spec.Bootstrap.ConfigRef.Kind != "FooConfig" ||
			m.Spec.Bootstrap.ConfigRef.Name != m.Name || m.Spec.Version != "v1.36.3" || m.Spec.FailureDomain != w.set().Spec.Template.Spec.FailureDomain {
			w.t.Errorf("Machine %s: spec %+v", m.Name, m.Spec)
		}
		if infra[i].GetName() != m.Name || bootstrap[i].GetName() != m.Name || infra[i].GetLabels()["size"] != "big" ||
			infra[i].GetAnnotations()[clusterv1.TemplateClonedFromNameAnnotation] != "it" ||
			bootstrap[i].GetAnnotations()[clusterv1.TemplateClonedFromGroupKindAnnotation] != "FooConfigTemplate.b" {
			w.t.Errorf("clones of %s: %v, %v", m.Name, infra[i].Object, bootstrap[i].Object)
		}
		if up := condition.Set(m.Status.Conditions).Get(clusterv1.MachineUpToDateCondition); up == nil || up.Status != "True" {
			w.t.Errorf("Machine %s: UpToDate %v", m.Name, up)
		}
	}
}

// finish plays the Machine controller: it takes down the Machines that are being deleted.
func (w *world) finish() {
	w.t.Helper()
	for _, m := range w.machines() {
		if m.DeletionTimestamp.IsZero() {
			continue
		}
		before := m.DeepCopy()
		m.Finalizers = nil
		w.twice(func() error { return w.c.Patch(w.t.Context(), m.DeepCopy(), client.MergeFrom(before)) })
	}
}

func TestOneWriteAnObject(t *testing.T) { // MS-09
	w := newWorld(t, nil)
	writes := map[string]int{}
	var mu sync.Mutex
	count := func(kind string) {
		mu.Lock()
		defer mu.Unlock()
		writes[kind]++
	}
	c := managementCluster(bareSet()).WithReturnManagedFields().WithInterceptorFuncs(interceptor.Funcs{
		Create: func(context.Context, client.WithWatch, client.Object, ...client.CreateOption) error {
			t.Error("objects are created by apply, so that their manager can apply again")
			return nil
		},
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
			if p.Type() == types.ApplyPatchType {
				count("apply")
			} else {
				count("patch")
			}
			return c.Patch(ctx, o, p, opts...)
		},
		SubResourcePatch: func(ctx context.Context, c client.Client, sub string, o client.Object, p client.Patch, opts ...client.SubResourcePatchOption) error {
			count("status")
			return c.SubResource(sub).Patch(ctx, o, p, opts...)
		},
	}).Build()
	w.c = c
	w.restart()
	w.settle()
	w.isWhole(2)
	// Two Machines with two clones each; finalizer, label and owner of the set at once; UpToDate of each Machine, and at
	// most three changes of the set's own status.
	if writes["apply"] != 6 || writes["patch"] != 1 || writes["status"] > 5 {
		t.Errorf("writes: %v", writes)
	}
	for _, m := range w.machines() {
		for _, e := range m.ManagedFields {
			if e.Manager != manager && e.Manager != "slipway-machineset" || e.Operation != "Apply" {
				t.Errorf("Machine %s: manager %s, operation %s", m.Name, e.Manager, e.Operation)
			}
		}
	}
	after := len(writes)
	total := writes["apply"] + writes["patch"] + writes["status"]
	w.restart()
	w.settle()
	if len(writes) != after || writes["apply"]+writes["patch"]+writes["status"] != total {
		t.Errorf("a new process writes what is there: %v", writes)
	}
}

// TestPropagation: what needs no new Machine reaches those that there are, and what belongs to others stays.
func TestPropagation(t *testing.T) { // MS-08, MS-09
	one := bareSet()
	one.Spec.Replicas = new(int32(1))
	testkit.FailEachWrite(t, func() *fake.ClientBuilder { return managementCluster(one.DeepCopy()) }, func(t *testing.T, c client.WithWatch) {
		w := newWorld(t, c)
		w.settle()
		for _, m := range w.machines() {
			w.change(&m, func() {
				m.Labels["users"], m.Spec.ProviderID, m.Spec.FailureDomain = "1", "foo://"+m.Name, "a"
			})
		}
		set := w.set()
		w.change(set, func() {
			set.Generation++
			set.Spec.Template.Labels["new"] = "1"
			set.Spec.Template.Annotations = map[string]string{"other": "2"}
			set.Spec.Template.Spec.MinReadySeconds = new(int32(7))
			set.Spec.Template.Spec.ReadinessGates = []clusterv1.MachineReadinessGate{{ConditionType: "x"}}
			set.Spec.Template.Spec.Deletion = clusterv1.MachineDeletionSpec{NodeDrainTimeoutSeconds: new(int32(5)),
				NodeVolumeDetachTimeoutSeconds: new(int32(6)), NodeDeletionTimeoutSeconds: new(int32(7))}
			set.Spec.Template.Spec.Taints = []clusterv1.MachineTaint{{Key: "k", Effect: corev1.TaintEffectNoSchedule, Propagation: "Always"}}
		})
		w.settle()
		for _, m := range w.machines() {
			want := set.Spec.Template.Spec
			labels := map[string]string{"set": "x", "new": "1", "users": "1", clusterv1.ClusterNameLabel: "c", clusterv1.MachineSetNameLabel: "ms"}
			if diff := cmp.Diff(labels, m.Labels); diff != "" {
				t.Errorf("labels (-want +got):\n%s", diff)
			}
			if m.Annotations["other"] != "2" { // what goes is for the API server: the fake one lets who applies a status own all
				t.Errorf("annotations %v", m.Annotations)
			}
			if !cmp.Equal(m.Spec.Deletion, want.Deletion) || !cmp.Equal(m.Spec.Taints, want.Taints) || !cmp.Equal(m.Spec.ReadinessGates, want.ReadinessGates) ||
				*m.Spec.MinReadySeconds != 7 || m.Spec.ProviderID == "" || m.Spec.FailureDomain != "a" || m.Spec.Version != "v1.36.3" {
				t.Errorf("spec %+v", m.Spec)
			}
		}
		for _, o := range append(w.clones("i", "FooMachine"), w.clones("b", "FooConfig")...) {
			_, old := o.GetAnnotations()["note"]
			if o.GetLabels()["new"] != "1" || o.GetAnnotations()["other"] != "2" || old || o.GetAnnotations()[clusterv1.TemplateClonedFromNameAnnotation] == "" {
				t.Errorf("%s %s: labels %v, annotations %v", o.GetKind(), o.GetName(), o.GetLabels(), o.GetAnnotations())
			}
		}
	})
}

// orphan is a Machine that the set may adopt.
func orphan(name string, changes ...func(*clusterv1.Machine)) *clusterv1.Machine {
	m := member(snapshot{Set: newSet()}, name, changes...).Machine
	m.OwnerReferences, m.Finalizers, m.Generation = nil, nil, 0
	return m
}

func TestAdoption(t *testing.T) { // MS-03, OR-01
	old := func(m *clusterv1.Machine) {
		m.OwnerReferences = []metav1.OwnerReference{{APIVersion: clusterv1.GroupVersion.String(), Kind: "MachineSet", Name: "ms", UID: "former", Controller: new(true)}}
	}
	former := orphan("b")
	old(former)
	testkit.FailEachWrite(t, func() *fake.ClientBuilder { return managementCluster(bareSet(), orphan("a"), former.DeepCopy()) },
		func(t *testing.T, c client.WithWatch) {
			w := newWorld(t, c)
			w.settle()
			machines := w.machines()
			if len(machines) != 2 {
				t.Fatalf("%d Machines: those that there were have to be counted before any is made", len(machines))
			}
			for _, m := range machines {
				owner := metav1.GetControllerOf(&m)
				if owner == nil || owner.UID != "ms" || len(m.OwnerReferences) != 1 || !cmp.Equal(m.Finalizers, []string{clusterv1.MachineFinalizer}) ||
					m.Annotations["note"] != "1" {
					t.Errorf("Machine %s: owners %v, finalizers %v, annotations %v", m.Name, m.OwnerReferences, m.Finalizers, m.Annotations)
				}
			}
		})
}

// TestCacheThatLags: what was created and deleted a moment ago counts before the cache shows it.
func TestCacheThatLags(t *testing.T) { // MS-04, MS-10
	one := member(snapshot{Set: newSet()}, "m1").Machine
	two := member(snapshot{Set: newSet()}, "m2").Machine
	w := newWorld(t, managementCluster(newSet(), one, two).Build())
	w.ctl.pending.Created("ms", "m1", now)                  // shown by now
	w.ctl.pending.Created("ms", "new", now)                 // not yet
	w.ctl.pending.Created("ms", "old", now.Add(-time.Hour)) // deleted before the cache showed it
	w.ctl.pending.Deleted("ms", "m2", now)
	for range 2 {
		s, err := w.ctl.observe(t.Context(), newSet())
		if err != nil {
			t.Fatal(err)
		}
		if !cmp.Equal(s.Created, []string{"new"}) || s.Machines[0].Deleted || !s.Machines[1].Deleted {
			t.Errorf("created %v, Machines %+v", s.Created, s.Machines)
		}
	}
}

// TestRestored: a MachineSet that comes back from a backup before its Machines makes none.
func TestRestored(t *testing.T) { // OR-01, MS-03
	w := newWorld(t, managementCluster(bareSet()).WithReturnManagedFields().Build())
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n", Annotations: map[string]string{
		clusterv1.ClusterNameAnnotation: "c", clusterv1.ClusterNamespaceAnnotation: "ns", clusterv1.MachineAnnotation: "a",
		clusterv1.OwnerKindAnnotation: "MachineSet", clusterv1.OwnerNameAnnotation: "ms"}}}
	w.must(w.workload.client.Create(t.Context(), node))
	w.workload.down = true
	isWaiting := func(why, want string) {
		t.Helper()
		w.settle()
		up := condition.Set(w.set().Status.Conditions).Get(clusterv1.MachineSetScalingUpCondition)
		if len(w.machines()) != 0 || w.set().Status.ObservedGeneration != 0 || up == nil || up.Message != want {
			t.Errorf("%s: %d Machines, observed generation %d, condition %+v", why, len(w.machines()), w.set().Status.ObservedGeneration, up)
		}
	}
	isWaiting("nobody has seen the workload cluster",
		"Scaling up from 0 to 2 replicas is blocked because:\n* Machines are created once the workload cluster has been seen: it is not connected")
	w.workload.down = false
	w.restart()
	isWaiting("a Node knows a Machine that is not there yet",
		"Scaling up from 0 to 2 replicas is blocked because:\n* Nodes of Machines that do not exist belong to MachineSet ms: restore the Machines, or delete Nodes n")
	w.must(w.c.Create(t.Context(), orphan("a")))
	w.settle()
	if got := len(w.machines()); got != 2 || w.set().Status.ObservedGeneration == 0 {
		t.Errorf("%d Machines once the graph is whole, want the one that came back and one more", got)
	}
	w.workload.down = true // what was known before does not depend on the workload cluster
	set := w.set()
	w.change(set, func() { set.Spec.Replicas = new(int32(3)); set.Generation++ })
	w.settle()
	if got := len(w.machines()); got != 3 {
		t.Errorf("%d Machines after scaling up", got)
	}
}

// A name that a Machine of another owner has is not used: to apply that Machine would take it over.
func TestNamesOfOthersAreNotTaken(t *testing.T) { // MS-10, OR-01
	one := bareSet()
	one.Spec.Replicas = new(int32(1))
	first := newWorld(t, managementCluster(one.DeepCopy()).WithReturnManagedFields().Build())
	first.settle()
	name := first.machines()[0].Name
	foreign := &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: "foreign",
		OwnerReferences: []metav1.OwnerReference{{APIVersion: clusterv1.GroupVersion.String(), Kind: "MachineSet", Name: "other", UID: "other", Controller: new(true)}}},
		Spec: clusterv1.MachineSpec{ClusterName: "another"}}
	w := newWorld(t, managementCluster(one.DeepCopy(), foreign).WithReturnManagedFields().Build())
	w.settle()
	got := &clusterv1.Machine{}
	w.must(w.c.Get(t.Context(), client.ObjectKeyFromObject(foreign), got))
	if diff := cmp.Diff(foreign.Spec, got.Spec); diff != "" || !cmp.Equal(foreign.OwnerReferences, got.OwnerReferences) {
		t.Errorf("the Machine of the other set was changed: owners %v, spec (-want +got):\n%s", got.OwnerReferences, diff)
	}
	if own := w.clones("i", "FooMachine"); len(own) != 1 || own[0].GetName() == name || *w.set().Status.Replicas != 1 {
		t.Errorf("the set has %v, status %d: want one under another name", own, *w.set().Status.Replicas)
	}
}
