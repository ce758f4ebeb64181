package simulation

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"k8s.io/utils/ptr"

	infrav1 "github.com/slipwayhq/slipway/api/infrastructure/v1alpha1"
	"github.com/slipwayhq/slipway/internal/controllers/machinepool"
	"github.com/slipwayhq/slipway/internal/local/backend"
	localmachinepool "github.com/slipwayhq/slipway/internal/local/machinepool"
	"github.com/slipwayhq/slipway/internal/machines"
	"github.com/slipwayhq/slipway/internal/reconciler"
	"github.com/slipwayhq/slipway/internal/reconciler/ownership"
	"github.com/slipwayhq/slipway/internal/reference"
	"github.com/slipwayhq/slipway/sdk/contract"
)

// restoredPools are the MachinePools of a restored management cluster, with what the Local provider has for them.
type restoredPools struct {
	pools      map[string]*clusterv1.MachinePool
	localPools map[string]*infrav1.LocalMachinePool
	locals     map[string]*infrav1.LocalMachine
}

// backupPool is a MachinePool of two as a backup keeps it. A halted one stands still in the middle of a rollout: a third
// machine, of the new template, does not become Ready.
func backupPool(clusterName string, halted bool) (objects []client.Object, nodes []corev1.Node) {
	name := clusterName + "-p"
	labels := map[string]string{clusterv1.ClusterNameLabel: clusterName}
	p := &clusterv1.MachinePool{ObjectMeta: meta(name)}
	p.Labels, p.Spec.ClusterName, p.Spec.Replicas = labels, clusterName, ptr.To(int32(2))
	p.Spec.Template.Spec = clusterv1.MachineSpec{
		ClusterName: clusterName, Version: "v1.36.3", Bootstrap: clusterv1.Bootstrap{DataSecretName: ptr.To("data")},
		InfrastructureRef: clusterv1.ContractVersionedObjectReference{APIGroup: infrav1.GroupVersion.Group, Kind: "LocalMachinePool", Name: name},
	}
	lp := &infrav1.LocalMachinePool{ObjectMeta: meta(name)}
	lp.Labels, lp.Spec.ProviderID = maps.Clone(labels), "slipway:///ns/"+name
	machines := 2
	if halted {
		machines = 3
	}
	for n := range machines {
		ready, member := corev1.ConditionTrue, fmt.Sprintf("%s-%d", name, n)
		m, l := &clusterv1.Machine{ObjectMeta: meta(member)}, &infrav1.LocalMachine{ObjectMeta: meta(member)}
		m.Labels = map[string]string{clusterv1.ClusterNameLabel: clusterName, clusterv1.MachinePoolNameLabel: name}
		l.Labels, l.Annotations = maps.Clone(m.Labels), map[string]string{backend.PoolAnnotation: name}
		if halted && n < 2 {
			l.Annotations["infrastructure.slipway.dev/template-hash"] = "old"
		} else if halted {
			ready = corev1.ConditionFalse
		}
		m.Spec, m.Finalizers = *p.Spec.Template.Spec.DeepCopy(), []string{clusterv1.MachineFinalizer}
		m.Spec.Deletion.NodeDeletionTimeoutSeconds = ptr.To(int32(10)) // the default
		*m.Spec.Bootstrap.DataSecretName, m.Spec.InfrastructureRef.Kind, m.Spec.InfrastructureRef.Name = "", "LocalMachine", member
		node := boot(m, name, ready)
		node.Annotations[clusterv1.OwnerKindAnnotation] = "MachinePool"
		l.Spec.ProviderID = m.Spec.ProviderID
		lp.Spec.ProviderIDList = append(lp.Spec.ProviderIDList, m.Spec.ProviderID)
		objects, nodes = append(objects, m, l), append(nodes, node)
	}
	p.Spec.ProviderIDList = slices.Clone(lp.Spec.ProviderIDList)
	return append(objects, p, lp), nodes
}

func (w *restored) putPool(o client.Object) {
	switch x := o.(type) {
	case *clusterv1.MachinePool:
		w.pools[x.Name] = x
	case *infrav1.LocalMachinePool:
		w.localPools[x.Name] = x
	case *infrav1.LocalMachine:
		w.locals[x.Name] = x
	}
}

func (w *restored) poolPasses() (out []func()) {
	for _, name := range slices.Sorted(maps.Keys(w.pools)) {
		out = append(out, func() { w.poolPass(w.pools[name]) })
	}
	for _, name := range slices.Sorted(maps.Keys(w.localPools)) {
		out = append(out, func() { w.localPoolPass(w.localPools[name]) })
	}
	for _, name := range slices.Sorted(maps.Keys(w.locals)) {
		out = append(out, func() { w.localPass(w.locals[name]) })
	}
	return out
}

func (w *restored) poolPass(pool *clusterv1.MachinePool) {
	c := w.clusters[pool.Spec.ClusterName]
	if enter(pool, clusterv1.MachinePoolFinalizer) {
		return
	}
	s := w.poolSnapshot(pool, c)
	p := machinepool.Decide(s)
	for _, action := range p.Actions {
		switch a := action.(type) {
		case machinepool.Join:
			pool.OwnerReferences = []metav1.OwnerReference{owner("Cluster", c, false)}
		case reference.SetOwner:
			ownership.AddOwner(w.localPools[a.Name], owner("MachinePool", pool, true))
		case machinepool.AdoptMachine:
			ownership.AddOwner(w.machines[a.Machine], owner("MachinePool", pool, true))
		case machinepool.SetUpToDate:
			judgeMachine(w.machines[a.Machine], machines.SetConditions{UpToDate: a.Verdict}, restoredNow())
		default:
			w.forbid("MachinePool %s: %s", pool.Name, a)
		}
	}
	pool.Status = machinepool.Report(s, p, reconciler.Outcome{Done: p.Actions}).Status.(clusterv1.MachinePoolStatus)
}

func (w *restored) poolSnapshot(pool *clusterv1.MachinePool, c *clusterv1.Cluster) machinepool.Snapshot {
	s := machinepool.Snapshot{Now: restoredNow(), Pool: pool, Cluster: c, Nodes: machinepool.Nodes{Items: map[string]corev1.Node{}}}
	if lp := w.localPools[pool.Name]; lp != nil {
		s.Infra = contract.InfraMachinePool(asProvider(lp, "LocalMachinePool"))
		for _, name := range slices.Sorted(maps.Keys(w.locals)) {
			if l := w.locals[name]; s.Infra.MachineKind.Or("") != "" && l.Labels[clusterv1.MachinePoolNameLabel] == pool.Name {
				s.InfraMachines = append(s.InfraMachines, asProvider(l, "LocalMachine"))
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(w.machines)) {
		if m := w.machines[name]; m.Labels[clusterv1.MachinePoolNameLabel] == pool.Name {
			s.Machines = append(s.Machines, *m)
		}
	}
	if s.Nodes.Known = w.connected[pool.Spec.ClusterName]; s.Nodes.Known {
		for _, n := range w.nodes {
			if slices.Contains(pool.Spec.ProviderIDList, n.Spec.ProviderID) {
				s.Nodes.Items[n.Spec.ProviderID] = n
			}
		}
	}
	return s
}

// asProvider is an object as those see it who know only its contract.
func asProvider(o client.Object, kind string) contract.Object {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
	if err != nil {
		panic(err)
	}
	u := &unstructured.Unstructured{Object: content}
	u.SetGroupVersionKind(infrav1.GroupVersion.WithKind(kind))
	return contract.Object{Unstructured: u, Contract: contract.V1Beta2}
}

func (w *restored) localPoolPass(lp *infrav1.LocalMachinePool) {
	ref := metav1.GetControllerOf(lp)
	if ref == nil || enter(lp, infrav1.LocalMachinePoolFinalizer) {
		return
	}
	c := &clusterv1.Cluster{}
	c.Status.Initialization.InfrastructureProvisioned = ptr.To(true) // nothing but ownership stands in the way of a creation
	s := localmachinepool.Snapshot{Object: lp, Pool: w.pools[ref.Name], Cluster: c, Live: true, Now: restoredNow()}
	for _, name := range slices.Sorted(maps.Keys(w.locals)) {
		if l := w.locals[name]; l.Annotations[backend.PoolAnnotation] == lp.Name {
			s.Members = append(s.Members, localmachinepool.PoolMember{Local: l, Machine: w.machines[name]})
		}
	}
	p := localmachinepool.Decide(s)
	for _, action := range p.Actions {
		if a, ok := action.(localmachinepool.AdoptMachine); ok {
			ref := owner("LocalMachinePool", lp, false)
			ref.APIVersion = infrav1.GroupVersion.String()
			ownership.AddOwner(w.locals[a.Name], ref)
			continue
		}
		w.forbid("LocalMachinePool %s: %s", lp.Name, action)
	}
	lp.Status = localmachinepool.Report(s, p, reconciler.Outcome{Done: p.Actions}).Status.(infrav1.LocalMachinePoolStatus)
}

// localPass looks at a machine that has run all the time, as soon as someone owns it.
func (w *restored) localPass(l *infrav1.LocalMachine) {
	if len(l.OwnerReferences) == 0 || enter(l, infrav1.LocalMachineFinalizer) {
		return
	}
	l.Status.Initialization.Provisioned = ptr.To(true)
	i := slices.IndexFunc(w.nodes, func(n corev1.Node) bool { return n.Spec.ProviderID == l.Spec.ProviderID })
	for _, c := range w.nodes[i].Status.Conditions {
		if c.Type == corev1.NodeReady {
			l.Status.Conditions = []metav1.Condition{{Type: clusterv1.ReadyCondition, Status: metav1.ConditionStatus(c.Status), Reason: "Node"}}
		}
	}
}

// infraOf is the infrastructure machine of a Machine of a pool.
func (w *restored) infraOf(m *clusterv1.Machine) contract.InfraMachineView {
	if l := w.locals[m.Spec.InfrastructureRef.Name]; l != nil {
		return contract.InfraMachine(asProvider(l, "LocalMachine"))
	}
	return contract.InfraMachineView{}
}

// control makes a Machine of a pool the controller of its LocalMachine.
func (w *restored) control(m *clusterv1.Machine, a reference.SetOwner) {
	ownership.AddOwner(w.locals[a.Name], owner("Machine", m, true))
}

func (w *restored) poolGraph(add func(kind string, o client.Object, observed bool)) {
	for _, o := range w.pools {
		add("MachinePool", o, o.Status.ObservedGeneration > 0)
	}
	for _, o := range w.localPools {
		add("LocalMachinePool", o, o.Status.Replicas != nil && ptrTrue(o.Status.Ready))
	}
	for _, o := range w.locals {
		sorted := o.DeepCopy()
		slices.SortFunc(sorted.OwnerReferences, func(a, b metav1.OwnerReference) int { return strings.Compare(a.Kind, b.Kind) })
		add("LocalMachine", sorted, ptrTrue(o.Status.Initialization.Provisioned))
	}
}

func originalPool(o client.Object, form string) (key, value string) {
	pool := o.GetLabels()[clusterv1.MachinePoolNameLabel]
	switch x := o.(type) {
	case *clusterv1.MachinePool:
		return "MachinePool " + x.Name, fmt.Sprintf(form, "Cluster "+x.Spec.ClusterName+" controller=false")
	case *infrav1.LocalMachinePool:
		return "LocalMachinePool " + x.Name, fmt.Sprintf(form, "MachinePool "+x.Name+" controller=true")
	default:
		return "LocalMachine " + o.GetName(), fmt.Sprintf(form, "LocalMachinePool "+pool+" controller=false Machine "+o.GetName()+" controller=true")
	}
}

// The test would see it: a pool that a user scales makes machines, and one whose machines go loses its Machines.
func TestRestoredPoolsThenChanged(t *testing.T) { // OR-01
	w := restoredWhole(t, 7)
	*w.pools["c1-p"].Spec.Replicas = 3
	delete(w.locals, "c2-p-1")
	w.expect(t, "LocalMachinePool c1-p: create LocalMachine", "MachinePool c2-p: delete Machine c2-p-1: its infrastructure machine is gone")
}
