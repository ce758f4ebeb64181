package simulation

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"k8s.io/utils/ptr"

	infrav1 "github.com/slipwayhq/slipway/api/infrastructure/v1alpha1"
	"github.com/slipwayhq/slipway/internal/condition"
	"github.com/slipwayhq/slipway/internal/controllers/cluster"
	"github.com/slipwayhq/slipway/internal/controllers/machine"
	"github.com/slipwayhq/slipway/internal/controllers/machinedeployment"
	"github.com/slipwayhq/slipway/internal/controllers/machineset"
	"github.com/slipwayhq/slipway/internal/kube"
	"github.com/slipwayhq/slipway/internal/machines"
	"github.com/slipwayhq/slipway/internal/reconciler"
	"github.com/slipwayhq/slipway/internal/reconciler/ownership"
	"github.com/slipwayhq/slipway/internal/reference"
	"github.com/slipwayhq/slipway/internal/workload"
	"github.com/slipwayhq/slipway/sdk/contract"
)

// How much is restored: clusters, MachineDeployments of each, and orders in which that happens in a run.
const (
	restoredClusters    = 3
	restoredDeployments = 3
	restoredOrders      = 50
	// roundsUntilWhole bounds the passes over every object after the last one was restored.
	roundsUntilWhole = 12
)

// restored is a management cluster in memory, over the decisions and reports of six controllers. It carries out what
// they decide, and takes note of every creation and deletion.
type restored struct {
	rng         *rand.Rand
	clusters    map[string]*clusterv1.Cluster
	deployments map[string]*clusterv1.MachineDeployment
	sets        map[string]*clusterv1.MachineSet
	machines    map[string]*clusterv1.Machine
	restoredPools
	// nodes of the workload clusters were never lost; those of a Cluster are seen once it is connected.
	nodes     []corev1.Node
	connected map[string]bool
	tries     map[string]int
	uids      int
	forbidden []string
}

func restoredNow() time.Time { return time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC) }

func newRestored(rng *rand.Rand) *restored {
	return &restored{
		rng: rng, clusters: map[string]*clusterv1.Cluster{}, deployments: map[string]*clusterv1.MachineDeployment{},
		sets: map[string]*clusterv1.MachineSet{}, machines: map[string]*clusterv1.Machine{}, connected: map[string]bool{}, tries: map[string]int{},
		restoredPools: restoredPools{map[string]*clusterv1.MachinePool{}, map[string]*infrav1.LocalMachinePool{}, map[string]*infrav1.LocalMachine{}},
	}
}

// backup is everything as a backup keeps it: without owners, finalizers and status. The first deployment of each Cluster
// stands still in the middle of a rollout, since the Node of the new version does not become ready. Every Machine has a
// Node: one that never had leaves no trace, and a MachineSet that comes back before it cannot know of it.
func backup() (objects []client.Object, nodes []corev1.Node) {
	for c := range restoredClusters {
		name := fmt.Sprintf("c%d", c)
		cl := &clusterv1.Cluster{ObjectMeta: meta(name)}
		cl.Spec.ControlPlaneRef = clusterv1.ContractVersionedObjectReference{APIGroup: "p", Kind: "Plane", Name: name}
		objects = append(objects, cl)
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
	d := &clusterv1.MachineDeployment{ObjectMeta: meta(name)}
	d.Labels, d.Annotations = map[string]string{clusterv1.ClusterNameLabel: clusterName}, map[string]string{clusterv1.RevisionAnnotation: "1"}
	d.Spec.ClusterName, d.Spec.Replicas, d.Spec.Selector.MatchLabels = clusterName, ptr.To(int32(2)), selected
	d.Spec.Template.Labels = selected
	d.Spec.Template.Spec = clusterv1.MachineSpec{ClusterName: clusterName, Version: "v1.36.3"}
	set, machines := backupSet(d, "1", 2)
	objects = append(append(objects, d, set), machines...)
	for _, m := range machines {
		nodes = append(nodes, boot(m.(*clusterv1.Machine), set.Name, "True"))
	}
	if halted {
		d.Spec.Template.Spec.Version, d.Annotations[clusterv1.RevisionAnnotation] = "v1.36.4", "2"
		set, machines := backupSet(d, "2", 1)
		objects = append(append(objects, set), machines...)
		nodes = append(nodes, boot(machines[0].(*clusterv1.Machine), set.Name, "False"))
	}
	return objects, nodes
}

func backupSet(d *clusterv1.MachineDeployment, revision string, replicas int) (*clusterv1.MachineSet, []client.Object) {
	unique := maps.Clone(d.Spec.Selector.MatchLabels)
	unique[clusterv1.MachineDeploymentUniqueLabel] = "hash-" + revision
	s := &clusterv1.MachineSet{ObjectMeta: meta(d.Name + "-" + revision)}
	s.Labels, s.Annotations = unique, map[string]string{
		clusterv1.RevisionAnnotation: revision, clusterv1.DesiredReplicasAnnotation: "2", clusterv1.MaxReplicasAnnotation: "3",
		clusterv1.MachineSetSkipPreflightChecksAnnotation: "All", // nothing but ownership stands in the way of a creation
	}
	s.Spec = clusterv1.MachineSetSpec{ClusterName: d.Spec.ClusterName, Replicas: ptr.To(int32(replicas)), Selector: metav1.LabelSelector{MatchLabels: unique}}
	s.Spec.Template = *d.Spec.Template.DeepCopy()
	s.Spec.Template.Labels = unique
	var machines []client.Object
	for n := range replicas {
		m := &clusterv1.Machine{ObjectMeta: meta(fmt.Sprintf("%s-%d", s.Name, n)), Spec: *s.Spec.Template.Spec.DeepCopy()}
		m.Labels = maps.Clone(unique)
		m.Labels[clusterv1.MachineSetNameLabel] = s.Name
		machines = append(machines, m)
	}
	return s, machines
}

// boot gives the Machine a Node, which is ready or not.
func boot(m *clusterv1.Machine, set string, ready corev1.ConditionStatus) corev1.Node {
	m.Spec.ProviderID = "x://" + m.Name
	n := corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: m.Name, Annotations: map[string]string{
		clusterv1.ClusterNameAnnotation: m.Spec.ClusterName, clusterv1.ClusterNamespaceAnnotation: "ns", clusterv1.MachineAnnotation: m.Name,
		clusterv1.OwnerKindAnnotation: "MachineSet", clusterv1.OwnerNameAnnotation: set,
	}}, Spec: corev1.NodeSpec{ProviderID: m.Spec.ProviderID}}
	for t, status := range map[corev1.NodeConditionType]corev1.ConditionStatus{
		corev1.NodeReady: ready, corev1.NodeMemoryPressure: "False", corev1.NodeDiskPressure: "False", corev1.NodePIDPressure: "False",
	} {
		n.Status.Conditions = append(n.Status.Conditions, corev1.NodeCondition{Type: t, Status: status})
	}
	return n
}

// put restores one object.
func (w *restored) put(o client.Object) {
	w.uids++
	o.SetUID(types.UID(fmt.Sprintf("uid-%d", w.uids)))
	o.SetGeneration(1)
	o.SetCreationTimestamp(metav1.NewTime(restoredNow().Add(-time.Minute)))
	switch x := o.(type) {
	case *clusterv1.Cluster:
		w.clusters[x.Name] = x
	case *clusterv1.MachineDeployment:
		w.deployments[x.Name] = x
	case *clusterv1.MachineSet:
		w.sets[x.Name] = x
	case *clusterv1.Machine:
		w.machines[x.Name] = x
	default:
		w.putPool(o)
	}
}

func (w *restored) forbid(format string, args ...any) {
	w.forbidden = append(w.forbidden, fmt.Sprintf(format, args...))
}

// passes lists a pass over every object that is there.
func (w *restored) passes() []func() {
	var out []func()
	for _, name := range slices.Sorted(maps.Keys(w.clusters)) {
		out = append(out, func() { w.clusterPass(w.clusters[name]) })
	}
	for _, name := range slices.Sorted(maps.Keys(w.deployments)) {
		out = append(out, func() { w.deploymentPass(w.deployments[name]) })
	}
	for _, name := range slices.Sorted(maps.Keys(w.sets)) {
		out = append(out, func() { w.setPass(w.sets[name]) })
	}
	for _, name := range slices.Sorted(maps.Keys(w.machines)) {
		out = append(out, func() { w.machinePass(w.machines[name]) })
	}
	return append(out, w.poolPasses()...)
}

// some makes passes over a random part of the objects, in random order.
func (w *restored) some(part float64) {
	all := w.passes()
	for _, i := range w.rng.Perm(len(all)) {
		if w.rng.Float64() < part {
			all[i]()
		}
	}
}

// enter adds the finalizer, as the driver does in a pass of its own; it reports whether that was to be done.
func enter(o client.Object, finalizer string) bool {
	if slices.Contains(o.GetFinalizers(), finalizer) {
		return false
	}
	o.SetFinalizers(append(o.GetFinalizers(), finalizer))
	return true
}

func owner(kind string, o client.Object, controller bool) metav1.OwnerReference {
	return metav1.OwnerReference{APIVersion: clusterv1.GroupVersion.String(), Kind: kind, Name: o.GetName(), UID: o.GetUID(), Controller: &controller}
}

func (w *restored) clusterPass(c *clusterv1.Cluster) {
	if enter(c, clusterv1.ClusterFinalizer) {
		return
	}
	plane := &unstructured.Unstructured{Object: map[string]any{
		"metadata": map[string]any{"name": c.Name},
		"status":   map[string]any{"initialization": map[string]any{"controlPlaneInitialized": true}, "externalManagedControlPlane": true},
	}}
	view := contract.ControlPlane(contract.Object{Unstructured: plane, Contract: contract.V1Beta2})
	s := cluster.Snapshot{Now: restoredNow(), Cluster: c, ControlPlane: view, Connection: workload.Health{Connected: w.connected[c.Name]}}
	p := cluster.Decide(s)
	for _, a := range p.Actions {
		if strings.HasPrefix(a.String(), "delete") {
			w.forbid("Cluster %s: %s", c.Name, a)
		}
	}
	c.Status = cluster.Report(s, p, reconciler.Outcome{Done: p.Actions}).Status.(clusterv1.ClusterStatus)
	if w.tries[c.Name]++; ptrTrue(c.Status.Initialization.ControlPlaneInitialized) && w.tries[c.Name] > w.rng.IntN(8) {
		w.connected[c.Name] = true
	}
}

func (w *restored) deploymentPass(d *clusterv1.MachineDeployment) {
	c := w.clusters[d.Spec.ClusterName]
	if enter(d, clusterv1.MachineDeploymentFinalizer) {
		if c != nil {
			d.OwnerReferences = []metav1.OwnerReference{owner("Cluster", c, false)}
		}
		return
	}
	s := w.deploymentSnapshot(d, c)
	p := machinedeployment.Decide(s)
	for _, action := range p.Actions {
		switch a := action.(type) {
		case machinedeployment.Join:
			d.OwnerReferences = []metav1.OwnerReference{owner("Cluster", c, false)}
		case machinedeployment.Adopt:
			w.sets[a.Set].OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(d, clusterv1.GroupVersion.WithKind("MachineDeployment"))}
			enter(w.sets[a.Set], clusterv1.MachineSetFinalizer)
		case machinedeployment.SyncSet:
			if a.From != a.Replicas {
				w.forbid("MachineDeployment %s: %s", d.Name, a)
			}
			w.sets[a.Name].ManagedFields = []metav1.ManagedFieldsEntry{{Manager: kube.ManagerPrefix + machinedeployment.Name,
				Operation: metav1.ManagedFieldsOperationApply, FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1("{}")}}
		default:
			w.forbid("MachineDeployment %s: %s", d.Name, a)
		}
	}
	d.Status = machinedeployment.Report(s, p, reconciler.Outcome{Done: p.Actions}).Status.(clusterv1.MachineDeploymentStatus)
}

func (w *restored) deploymentSnapshot(d *clusterv1.MachineDeployment, c *clusterv1.Cluster) machinedeployment.Snapshot {
	s := machinedeployment.Snapshot{Now: restoredNow(), Deployment: d, Cluster: c, Machines: map[string][]clusterv1.Machine{}}
	mine := labels.SelectorFromSet(d.Spec.Selector.MatchLabels)
	known := map[string]bool{}
	for _, name := range slices.Sorted(maps.Keys(w.sets)) {
		if set := w.sets[name]; ownership.ControllerOf(set, d.UID) == ownership.ThisController ||
			ownership.ControllerOf(set, d.UID) == ownership.NoController && mine.Matches(labels.Set(set.Labels)) {
			s.Sets, known[name] = append(s.Sets, *set), true
		}
	}
	for _, name := range slices.Sorted(maps.Keys(w.machines)) {
		m := w.machines[name]
		if m.Labels[clusterv1.MachineDeploymentNameLabel] != d.Name {
			continue
		}
		if set := m.Labels[clusterv1.MachineSetNameLabel]; known[set] {
			s.Machines[set] = append(s.Machines[set], *m)
		} else {
			s.OrphanedMachines = append(s.OrphanedMachines, *m)
		}
	}
	return s
}

func (w *restored) setPass(set *clusterv1.MachineSet) {
	if enter(set, clusterv1.MachineSetFinalizer) {
		return
	}
	s := w.setSnapshot(set)
	p := machineset.Decide(s)
	for _, action := range p.Actions {
		switch a := action.(type) {
		case machineset.Adopt:
			w.machines[a.Machine].OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(set, clusterv1.GroupVersion.WithKind("MachineSet"))}
		case machines.SetConditions:
			judgeMachine(w.machines[a.Machine], a, restoredNow())
		case machines.SyncMachine, machineset.Join:
		default:
			w.forbid("MachineSet %s: %s", set.Name, a)
		}
	}
	set.Status = machineset.Report(s, p, reconciler.Outcome{Done: p.Actions}).Status.(clusterv1.MachineSetStatus)
}

// judgeMachine says what a MachineSet says of a Machine.
func judgeMachine(m *clusterv1.Machine, a machines.SetConditions, now time.Time) {
	table := condition.Table[condition.Result]{{Type: clusterv1.MachineUpToDateCondition, Compute: func(v condition.Result) condition.Result { return v }}}
	m.Status.Conditions = append(slices.DeleteFunc(m.Status.Conditions, func(c metav1.Condition) bool { return c.Type == clusterv1.MachineUpToDateCondition }),
		table.Evaluate(a.UpToDate, reconciler.EvaluateOptionsFor(m, now))...)
}

func (w *restored) setSnapshot(set *clusterv1.MachineSet) machineset.Snapshot {
	c := w.clusters[set.Spec.ClusterName]
	s := machineset.Snapshot{Now: restoredNow(), Set: set, Cluster: c, Verified: true, Random: []string{"bbbbb", "ccccc", "ddddd", "fffff"}}
	if ref := metav1.GetControllerOf(set); ref != nil && w.deployments[ref.Name] != nil && w.deployments[ref.Name].UID == ref.UID {
		s.Deployment = w.deployments[ref.Name]
	}
	for _, name := range slices.Sorted(maps.Keys(w.machines)) {
		m := w.machines[name]
		switch {
		case ownership.ControllerOf(m, set.UID) == ownership.ThisController:
			s.Machines = append(s.Machines, machines.OwnedMachine{Machine: m})
		case m.Labels[clusterv1.MachineSetNameLabel] == set.Name:
			s.Others = append(s.Others, m)
		}
	}
	switch {
	case set.Status.ObservedGeneration > 0 || c == nil:
	case !w.connected[c.Name]:
		s.Workload.Problem = "it is not connected"
	default:
		s.Workload.NodesRead = true
		s.Workload.OrphanedNodes = ownership.OrphanedNodes(types.NamespacedName{Namespace: "ns", Name: c.Name}, w.nodes,
			func(name string) bool { return name == set.Name }, func(name string) bool { return w.machines[name] != nil })
	}
	return s
}

func (w *restored) machinePass(m *clusterv1.Machine) {
	if enter(m, clusterv1.MachineFinalizer) {
		return
	}
	c := w.clusters[m.Spec.ClusterName]
	s := machine.Snapshot{Now: restoredNow(), Machine: m, Cluster: c, Infra: w.infraOf(m), Connection: workload.Health{Connected: w.connected[m.Spec.ClusterName]}}
	for _, set := range w.sets {
		if ownership.ControllerOf(m, set.UID) == ownership.ThisController {
			if d := w.setSnapshot(set).Deployment; d != nil {
				s.Set, s.Deployment = set, d
			}
		}
	}
	if !w.connected[m.Spec.ClusterName] {
		s.Node.Waiting = "the control plane is not initialized yet"
	} else {
		s.Node.WasRead = true
		if i := slices.IndexFunc(w.nodes, func(n corev1.Node) bool { return n.Spec.ProviderID == m.Spec.ProviderID }); i >= 0 {
			s.Node.Item = &w.nodes[i]
		}
	}
	p := machine.Decide(s)
	for _, action := range p.Actions {
		switch a := action.(type) {
		case machine.SyncNode:
		case reference.SetOwner:
			w.control(m, a)
		default: // to join the Cluster would take it away from its MachineSet
			w.forbid("Machine %s: %s", m.Name, a)
		}
	}
	judged := condition.Set(m.Status.Conditions).Get(clusterv1.MachineUpToDateCondition)
	status := machine.Report(s, p, reconciler.Outcome{Done: p.Actions}).Status.(clusterv1.MachineStatus)
	if judged != nil && condition.Set(status.Conditions).Get(judged.Type) == nil {
		status.Conditions = append(status.Conditions, *judged) // another writer's
	}
	m.Status = status
}

// graph says who owns every object, and what is missing of it.
func (w *restored) graph() map[string]string {
	out := map[string]string{}
	add := func(kind string, o client.Object, observed bool) {
		var owners []string
		for _, ref := range o.GetOwnerReferences() {
			owners = append(owners, fmt.Sprintf("%s %s controller=%t", ref.Kind, ref.Name, ptrTrue(ref.Controller)))
		}
		out[kind+" "+o.GetName()] = fmt.Sprintf("owners %v, finalizers %d, looked at %t", owners, len(o.GetFinalizers()), observed)
	}
	for _, o := range w.clusters {
		add("Cluster", o, o.Status.ObservedGeneration > 0)
	}
	for _, o := range w.deployments {
		add("MachineDeployment", o, o.Status.ObservedGeneration > 0)
	}
	for _, o := range w.sets {
		add("MachineSet", o, o.Status.ObservedGeneration > 0)
	}
	for _, o := range w.machines {
		add("Machine", o, o.Status.NodeRef.IsDefined())
	}
	w.poolGraph(add)
	return out
}

// original is the graph as it was when the backup was made.
func original(objects []client.Object) map[string]string {
	const form = "owners [%s], finalizers 1, looked at true"
	out := map[string]string{}
	for _, o := range objects {
		switch x := o.(type) {
		case *clusterv1.Cluster:
			out["Cluster "+x.Name] = fmt.Sprintf(form, "")
		case *clusterv1.MachineDeployment:
			out["MachineDeployment "+x.Name] = fmt.Sprintf(form, "Cluster "+x.Spec.ClusterName+" controller=false")
		case *clusterv1.MachineSet:
			out["MachineSet "+x.Name] = fmt.Sprintf(form, "MachineDeployment "+x.Labels[clusterv1.MachineDeploymentNameLabel]+" controller=true")
		case *clusterv1.Machine:
			by := "MachineSet " + x.Labels[clusterv1.MachineSetNameLabel]
			if pool, ok := x.Labels[clusterv1.MachinePoolNameLabel]; ok {
				by = "MachinePool " + pool
			}
			out["Machine "+x.Name] = fmt.Sprintf(form, by+" controller=true")
		default:
			key, value := originalPool(o, form)
			out[key] = value
		}
	}
	return out
}

// What is restored without owners, finalizers and status, in any order, any part of it at a time, comes together as it
// was: no Machine and no MachineSet is made, scaled or removed, and none goes to another owner.
func TestRestoredInAnyOrder(t *testing.T) { // OR-01
	for seed := range uint64(restoredOrders) {
		w := newRestored(rand.New(rand.NewPCG(5, seed)))
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
			t.Fatalf("seed %d: not whole after %d rounds (-want +got):\n%s", seed, rounds, diff)
		}
		for range 5 { // and nothing happens now that it is
			w.some(1)
		}
		if len(w.forbidden) > 0 {
			t.Fatalf("seed %d:\n%s", seed, strings.Join(w.forbidden, "\n"))
		}
	}
}

// restoredWhole is a management cluster into which everything was restored, and which is as it was.
func restoredWhole(t *testing.T, seed uint64) *restored {
	t.Helper()
	w := newRestored(rand.New(rand.NewPCG(seed, 1)))
	objects, nodes := backup()
	w.nodes = nodes
	for _, o := range objects {
		w.put(o)
	}
	for range roundsUntilWhole {
		w.some(1)
	}
	if len(w.forbidden) > 0 {
		t.Fatal(strings.Join(w.forbidden, "\n"))
	}
	return w
}

// expect fails unless the next pass over everything does what must not be done in a restore.
func (w *restored) expect(t *testing.T, wants ...string) {
	t.Helper()
	w.some(1)
	said := strings.Join(w.forbidden, "\n")
	for _, want := range wants {
		if !strings.Contains(said, want) {
			t.Errorf("nobody noticed %q in:\n%s", want, said)
		}
	}
}

// The test would see it: a rollout that can go on makes a MachineSet, and a deployment that a user scales makes Machines.
func TestRestoredThenChanged(t *testing.T) { // OR-01
	w := restoredWhole(t, 6)
	w.deployments["c1-d1"].Spec.Template.Spec.Version = "v1.36.4"
	*w.deployments["c2-d2"].Spec.Replicas, *w.sets["c2-d2-1"].Spec.Replicas = 3, 3
	w.expect(t, "MachineDeployment c1-d1: create MachineSet", "MachineSet c2-d2-1: create Machine")
}
