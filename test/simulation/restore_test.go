package simulation

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"k8s.io/utils/ptr"

	hostedv1 "github.com/slipwayhq/slipway/api/controlplane/v1alpha1"
	infrav1 "github.com/slipwayhq/slipway/api/infrastructure/v1alpha1"
	"github.com/slipwayhq/slipway/internal/controllers/cluster"
	"github.com/slipwayhq/slipway/internal/controllers/machine"
	"github.com/slipwayhq/slipway/internal/controllers/machinedeployment"
	"github.com/slipwayhq/slipway/internal/controllers/machinepool"
	"github.com/slipwayhq/slipway/internal/controllers/machineset"
	"github.com/slipwayhq/slipway/internal/local/backend"
	localmachinepool "github.com/slipwayhq/slipway/internal/local/machinepool"
	"github.com/slipwayhq/slipway/internal/plan/world"
	"github.com/slipwayhq/slipway/internal/policy"
	"github.com/slipwayhq/slipway/internal/reconciler"
	"github.com/slipwayhq/slipway/test/testhost"
)

// How much is restored: clusters, MachineDeployments of each, and orders in which that happens in a run.
const (
	restoredClusters    = 3
	restoredDeployments = 3
	restoredOrders      = 10
	// roundsUntilWhole bounds the rounds of reconciliations after the last object was restored.
	roundsUntilWhole = 40
)

// restored is a management cluster in memory under six controllers. The test plays the providers of machines and of
// control planes, and takes note of every action that a restore must not cause.
type restored struct {
	*management
	// nodes of the workload clusters were never lost; those of a Cluster are seen once it is connected.
	nodes     []corev1.Node
	connected map[string]bool
	forbidden []string
}

func newRestored(t *testing.T, rng *rand.Rand) *restored {
	t.Helper()
	w := &restored{management: newManagement(t, rng), connected: map[string]bool{}}
	w.planned = w.note
	w.run(func(s reconciler.Setup) error {
		return errors.Join(
			cluster.Add(s, w.workloads, cluster.Settings{}), machinedeployment.Add(s, nil, machinedeployment.Settings{}),
			machineset.Add(s, w.workloads, machineset.Settings{}), machine.Add(s, w.workloads, nil, machine.Settings{}),
			machinepool.Add(s, w.workloads, machinepool.Settings{Policy: policy.Default()}),
			localmachinepool.Add(s, backend.CapacityCalculator{Backends: testhost.New().Set(), Policy: policy.Default()}))
	})
	return w
}

// note records the actions that create, delete, scale or take away what was restored.
func (w *restored) note(by reconciler.PlanKey, p reconciler.Plan) {
	allowed := map[string][]string{
		cluster.Name:           {"own ", "set endpoint "},
		machinedeployment.Name: {"join ", "adopt ", "sync MachineSet ", "make the Cluster an owner of "},
		machineset.Name:        {"join ", "adopt ", "sync ", "set conditions of ", "make the Cluster an owner of "},
		machine.Name:           {"own ", "copy ", "sync labels, annotations and taints to Node "}, // to join the Cluster would take it away from its MachineSet
		machinepool.Name:       {"join ", "own ", "adopt ", "copy ", "set condition ", "sync Machine ", "mark Node "},
		localmachinepool.Name:  {"own "},
	}
	for _, a := range p.Actions {
		if text := a.String(); !slices.ContainsFunc(allowed[by.Controller], func(begin string) bool { return strings.HasPrefix(text, begin) }) {
			w.forbidden = append(w.forbidden, fmt.Sprintf("%s %s: %s", by.Kind.Kind, by.Key.Name, text))
		}
	}
}

// backup is everything as a backup keeps it: without owners, finalizers and status. The first deployment of each Cluster
// stands still in the middle of a rollout, since the Node of the new version does not become ready. Every Machine has a
// Node: one that never had leaves no trace, and a MachineSet that comes back before it cannot know of it.
func backup() (objects []client.Object, nodes []corev1.Node) {
	for c := range restoredClusters {
		name := fmt.Sprintf("c%d", c)
		cl := &clusterv1.Cluster{ObjectMeta: meta(name)}
		cl.Spec.ControlPlaneRef = clusterv1.ContractVersionedObjectReference{APIGroup: hostedv1.GroupVersion.Group, Kind: "HostedControlPlane", Name: name}
		cl.Spec.InfrastructureRef = clusterv1.ContractVersionedObjectReference{APIGroup: infrav1.GroupVersion.Group, Kind: "LocalCluster", Name: name}
		cl.Spec.ControlPlaneEndpoint = clusterv1.APIEndpoint{Host: "10.0.0.1", Port: 6443}
		plane := &hostedv1.HostedControlPlane{ObjectMeta: meta(name)}
		plane.Spec.Version, plane.Spec.ControlPlaneEndpoint = "v1.36.4", cl.Spec.ControlPlaneEndpoint
		infra := &infrav1.LocalCluster{ObjectMeta: meta(name)}
		infra.Spec.Backend.Container = &infrav1.ContainerCluster{}
		objects = append(objects, cl, plane, infra)
		for d := range restoredDeployments {
			part, booted := backupDeployment(name, fmt.Sprintf("%s-d%d", name, d), d == 0)
			objects, nodes = append(objects, part...), append(nodes, booted...)
		}
		part, booted := backupPool(name, c == 0)
		objects, nodes = append(objects, part...), append(nodes, booted...)
	}
	return objects, nodes
}

func backupDeployment(clusterName, name string, halted bool) (objects []client.Object, nodes []corev1.Node) {
	selected := map[string]string{clusterv1.ClusterNameLabel: clusterName, clusterv1.MachineDeploymentNameLabel: name}
	h := &infrav1.LocalMachineTemplate{ObjectMeta: meta(name)}
	h.Spec.Template.Spec.Backend.Container = &infrav1.ContainerMachine{}
	d := &clusterv1.MachineDeployment{ObjectMeta: meta(name)}
	d.Labels, d.Annotations = map[string]string{clusterv1.ClusterNameLabel: clusterName}, map[string]string{clusterv1.RevisionAnnotation: "1"}
	d.Spec.ClusterName, d.Spec.Replicas, d.Spec.Selector.MatchLabels = clusterName, ptr.To(int32(2)), selected
	d.Spec.Rollout.Strategy = strategy("1", "0")
	d.Spec.Template.Labels = selected
	d.Spec.Template.Spec = clusterv1.MachineSpec{
		ClusterName: clusterName, Version: "v1.36.3", Bootstrap: clusterv1.Bootstrap{DataSecretName: ptr.To("data")},
		InfrastructureRef: clusterv1.ContractVersionedObjectReference{APIGroup: infrav1.GroupVersion.Group, Kind: "LocalMachineTemplate", Name: name},
	}
	d.Spec.Template.Spec.Deletion.NodeDeletionTimeoutSeconds = ptr.To(int32(10)) // the default
	part, booted := backupSet(d, "1", 2, "True")
	objects, nodes = append(append(objects, h, d), part...), booted
	if halted {
		d.Spec.Template.Spec.Version, d.Annotations[clusterv1.RevisionAnnotation] = "v1.36.4", "2"
		part, booted := backupSet(d, "2", 1, "False")
		objects, nodes = append(objects, part...), append(nodes, booted...)
	}
	return objects, nodes
}

func backupSet(d *clusterv1.MachineDeployment, revision string, replicas int, ready metav1.ConditionStatus) (objects []client.Object, nodes []corev1.Node) {
	unique := map[string]string{clusterv1.MachineDeploymentUniqueLabel: "hash-" + revision}
	for k, v := range d.Spec.Selector.MatchLabels {
		unique[k] = v
	}
	s := &clusterv1.MachineSet{ObjectMeta: meta(d.Name + "-" + revision)}
	s.Labels, s.Annotations = unique, map[string]string{
		clusterv1.RevisionAnnotation: revision, clusterv1.DesiredReplicasAnnotation: "2", clusterv1.MaxReplicasAnnotation: "3",
		clusterv1.MachineSetSkipPreflightChecksAnnotation: "All", // nothing but ownership stands in the way of a creation
	}
	s.Spec = clusterv1.MachineSetSpec{ClusterName: d.Spec.ClusterName, Replicas: ptr.To(int32(replicas)), Selector: metav1.LabelSelector{MatchLabels: unique}}
	s.Spec.Template = *d.Spec.Template.DeepCopy()
	s.Spec.Template.Labels = unique
	objects = append(objects, s)
	for n := range replicas {
		m := &clusterv1.Machine{ObjectMeta: meta(fmt.Sprintf("%s-%d", s.Name, n)), Spec: *s.Spec.Template.Spec.DeepCopy()}
		m.Labels = map[string]string{clusterv1.MachineSetNameLabel: s.Name}
		for k, v := range unique {
			m.Labels[k] = v
		}
		l := &infrav1.LocalMachine{ObjectMeta: meta(m.Name)}
		l.Labels = m.Labels
		l.Spec.Backend.Container = &infrav1.ContainerMachine{}
		m.Spec.InfrastructureRef.Kind, m.Spec.InfrastructureRef.Name = "LocalMachine", m.Name
		nodes = append(nodes, boot(m, s.Name, ready))
		l.Spec.ProviderID = m.Spec.ProviderID
		objects = append(objects, m, l)
	}
	return objects, nodes
}

// boot gives the Machine a Node, which is ready or not.
func boot(m *clusterv1.Machine, set string, ready metav1.ConditionStatus) corev1.Node {
	m.Spec.ProviderID = backend.ProviderID(backend.MachineName("i", client.ObjectKeyFromObject(m)))
	return corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: m.Name, Annotations: map[string]string{
		clusterv1.ClusterNameAnnotation: m.Spec.ClusterName, clusterv1.ClusterNamespaceAnnotation: "ns", clusterv1.MachineAnnotation: m.Name,
		clusterv1.OwnerKindAnnotation: "MachineSet", clusterv1.OwnerNameAnnotation: set,
	}}, Spec: corev1.NodeSpec{ProviderID: m.Spec.ProviderID}, Status: corev1.NodeStatus{
		Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionStatus(ready)}},
		NodeInfo:   corev1.NodeSystemInfo{KubeletVersion: m.Spec.Version},
	}}
}

// put restores one object.
func (w *restored) put(o client.Object) {
	w.t.Helper()
	w.must(w.Create(w.t.Context(), o))
	switch o := o.(type) {
	case *hostedv1.HostedControlPlane: // it runs
		play(w.management, o, func(o *hostedv1.HostedControlPlane) {
			o.Status.Initialization.ControlPlaneInitialized, o.Status.ExternalManagedControlPlane = ptr.To(true), ptr.To(true)
			o.Status.Version, o.Status.Conditions = o.Spec.Version, ready("Available")
		})
	case *infrav1.LocalCluster:
		play(w.management, o, func(o *infrav1.LocalCluster) {
			o.Status.Initialization.Provisioned, o.Status.Conditions = ptr.To(true), ready("Ready")
		})
	default:
		w.proceed()
	}
}

// steps lists what can happen next.
func (w *restored) steps() []func() {
	out := w.requests()
	for _, c := range all[clusterv1.Cluster](w.management) {
		if ptrTrue(c.Status.Initialization.ControlPlaneInitialized) && !w.connected[c.Name] {
			out = append(out, func() { w.connect(c.Name) })
		}
	}
	for _, l := range all[infrav1.LocalMachine](w.management) {
		if len(l.OwnerReferences) > 0 && !ptrTrue(l.Status.Initialization.Provisioned) && len(w.nodesOf(l)) == 1 {
			out = append(out, func() { w.observeMachine(l) })
		}
	}
	return out
}

// connect makes a workload cluster reachable, with the Nodes that it had all the time.
func (w *restored) connect(name string) {
	w.t.Helper()
	w.connected[name] = true
	key := client.ObjectKey{Namespace: "ns", Name: name}
	w.workloads.Connect(key)
	c, err := w.workloads.Client(w.t.Context(), key)
	w.must(err)
	for _, n := range w.nodes {
		if n.Annotations[clusterv1.ClusterNameAnnotation] != name {
			continue
		}
		w.workloads.AddNode(key, world.Node{Name: n.Name, ProviderID: n.Spec.ProviderID, Version: n.Status.NodeInfo.KubeletVersion,
			Ready: metav1.ConditionStatus(n.Status.Conditions[0].Status)})
		added := &corev1.Node{}
		w.must(c.Get(w.t.Context(), client.ObjectKey{Name: n.Name}, added))
		before := added.DeepCopy()
		added.Annotations = n.Annotations
		w.must(c.Patch(w.t.Context(), added, client.MergeFrom(before)))
	}
	w.proceed()
}

func (w *restored) nodesOf(l *infrav1.LocalMachine) []corev1.Node {
	return slices.DeleteFunc(slices.Clone(w.nodes), func(n corev1.Node) bool { return n.Spec.ProviderID != l.Spec.ProviderID })
}

// observeMachine reports a machine that has run all the time, as soon as it has an owner.
func (w *restored) observeMachine(l *infrav1.LocalMachine) {
	w.t.Helper()
	play(w.management, l, func(l *infrav1.LocalMachine) {
		l.Finalizers = []string{infrav1.LocalMachineFinalizer}
		l.Status.Initialization.Provisioned = ptr.To(true)
		l.Status.Conditions = []metav1.Condition{{Type: clusterv1.ReadyCondition, Status: metav1.ConditionStatus(w.nodesOf(l)[0].Status.Conditions[0].Status),
			Reason: "Node", LastTransitionTime: metav1.NewTime(w.world.Now())}}
	})
}

// some lets a random part of what can happen next happen, in random order.
func (w *restored) some(part float64) {
	w.t.Helper()
	next := w.steps()
	for _, i := range w.rng.Perm(len(next)) {
		if w.rng.Float64() < part {
			next[i]()
		}
	}
	w.pass(time.Second)
}

// graph says who owns every object, and what is missing of it.
func (w *restored) graph() map[string]string {
	out := map[string]string{}
	add := func(kind string, o client.Object, observed bool) {
		refs := o.GetOwnerReferences()
		slices.SortFunc(refs, func(a, b metav1.OwnerReference) int { return strings.Compare(a.Kind, b.Kind) })
		var owners []string
		for _, ref := range refs {
			owners = append(owners, fmt.Sprintf("%s %s controller=%t", ref.Kind, ref.Name, ptrTrue(ref.Controller)))
		}
		out[kind+" "+o.GetName()] = fmt.Sprintf("owners %v, finalizers %d, observed %t", owners, len(o.GetFinalizers()), observed)
	}
	for _, o := range all[clusterv1.Cluster](w.management) {
		add("Cluster", o, o.Status.ObservedGeneration > 0)
	}
	for _, o := range all[clusterv1.MachineDeployment](w.management) {
		add("MachineDeployment", o, o.Status.ObservedGeneration > 0)
	}
	for _, o := range all[clusterv1.MachineSet](w.management) {
		add("MachineSet", o, o.Status.ObservedGeneration > 0)
	}
	for _, o := range all[clusterv1.Machine](w.management) {
		add("Machine", o, o.Status.NodeRef.IsDefined())
	}
	for _, o := range all[clusterv1.MachinePool](w.management) {
		add("MachinePool", o, o.Status.ObservedGeneration > 0)
	}
	for _, o := range all[infrav1.LocalMachinePool](w.management) {
		add("LocalMachinePool", o, o.Status.Replicas != nil && ptrTrue(o.Status.Ready))
	}
	for _, o := range all[infrav1.LocalMachine](w.management) {
		add("LocalMachine", o, ptrTrue(o.Status.Initialization.Provisioned))
	}
	return out
}

// original is the graph as it was when the backup was made.
func original(objects []client.Object) map[string]string {
	out := map[string]string{}
	add := func(kind, name string, owners ...string) {
		out[kind+" "+name] = fmt.Sprintf("owners %v, finalizers 1, observed true", owners)
	}
	for _, o := range objects {
		pool, pooled := o.GetLabels()[clusterv1.MachinePoolNameLabel]
		switch x := o.(type) {
		case *clusterv1.Cluster:
			add("Cluster", x.Name)
		case *clusterv1.MachineDeployment:
			add("MachineDeployment", x.Name, "Cluster "+x.Spec.ClusterName+" controller=false")
		case *clusterv1.MachineSet:
			add("MachineSet", x.Name, "MachineDeployment "+x.Labels[clusterv1.MachineDeploymentNameLabel]+" controller=true")
		case *clusterv1.MachinePool:
			add("MachinePool", x.Name, "Cluster "+x.Spec.ClusterName+" controller=false")
		case *infrav1.LocalMachinePool:
			add("LocalMachinePool", x.Name, "MachinePool "+x.Name+" controller=true")
		case *clusterv1.Machine:
			if pooled {
				add("Machine", x.Name, "MachinePool "+pool+" controller=true")
			} else {
				add("Machine", x.Name, "MachineSet "+x.Labels[clusterv1.MachineSetNameLabel]+" controller=true")
			}
		case *infrav1.LocalMachine:
			if pooled {
				add("LocalMachine", x.Name, "LocalMachinePool "+pool+" controller=false", "Machine "+x.Name+" controller=true")
			} else {
				add("LocalMachine", x.Name, "Machine "+x.Name+" controller=true")
			}
		}
	}
	return out
}

// What is restored without owners, finalizers and status, in any order, any part of it at a time, comes together as it
// was: no Machine and no MachineSet is created, scaled or deleted, and none goes to another owner.
func TestRestoredInAnyOrder(t *testing.T) { // OR-01
	for seed := range uint64(restoredOrders) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			t.Parallel()
			w := newRestored(t, rand.New(rand.NewPCG(5, seed)))
			objects, nodes := backup()
			w.nodes = nodes
			want := original(objects)
			for _, i := range w.rng.Perm(len(objects)) {
				w.put(objects[i])
				for w.rng.IntN(3) == 0 { // now and then the controllers get to look at what there is
					w.some(w.rng.Float64())
				}
			}
			rounds := 0
			for ; rounds < roundsUntilWhole && cmp.Diff(want, w.graph()) != ""; rounds++ {
				w.some(1)
			}
			if diff := cmp.Diff(want, w.graph()); diff != "" {
				t.Errorf("not whole after %d rounds (-want +got):\n%s", rounds, diff)
			}
			for range 5 { // and nothing happens now that it is
				w.some(1)
				w.pass(10 * time.Minute)
			}
			if len(w.forbidden) > 0 {
				t.Errorf("forbidden:\n%s", strings.Join(w.forbidden, "\n"))
			}
		})
	}
}

// restoredWhole is a management cluster into which everything was restored, and which is as it was.
func restoredWhole(t *testing.T, seed uint64) *restored {
	t.Helper()
	w := newRestored(t, rand.New(rand.NewPCG(seed, 1)))
	objects, nodes := backup()
	w.nodes = nodes
	for _, o := range objects {
		w.put(o)
	}
	want := original(objects)
	for n := 0; n < roundsUntilWhole && cmp.Diff(want, w.graph()) != ""; n++ {
		w.some(1)
	}
	if len(w.forbidden) > 0 {
		t.Fatal(strings.Join(w.forbidden, "\n"))
	}
	return w
}

// user changes an object of a kind as a user does.
func user[T any, O interface {
	*T
	client.Object
}](w *restored, name string, f func(O)) {
	w.t.Helper()
	o := O(new(T))
	w.must(w.Get(w.t.Context(), client.ObjectKey{Namespace: "ns", Name: name}, o))
	before := o.DeepCopyObject().(client.Object)
	f(o)
	w.must(w.Patch(w.t.Context(), o, client.MergeFrom(before), client.FieldOwner("user")))
	w.proceed()
}

// expect fails unless the next rounds do what must not be done in a restore.
func (w *restored) expect(t *testing.T, wants ...string) {
	t.Helper()
	for range 3 {
		w.some(1)
	}
	got := strings.Join(w.forbidden, "\n")
	for _, want := range wants {
		if !strings.Contains(got, want) {
			t.Errorf("%q is not noticed in:\n%s", want, got)
		}
	}
}

// The test would see it: a rollout that can go on creates a MachineSet, and a deployment that a user scales creates Machines.
func TestRestoredThenChanged(t *testing.T) { // OR-01
	w := restoredWhole(t, 6)
	user(w, "c1-d1", func(d *clusterv1.MachineDeployment) { d.Spec.Template.Spec.Version = "v1.36.4" })
	user(w, "c2-d2", func(d *clusterv1.MachineDeployment) { *d.Spec.Replicas = 3 })
	user(w, "c2-d2-1", func(s *clusterv1.MachineSet) { *s.Spec.Replicas = 3 })
	w.expect(t, "MachineDeployment c1-d1: create MachineSet", "MachineSet c2-d2-1: create Machine")
}
