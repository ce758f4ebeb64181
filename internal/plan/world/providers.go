package world

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slipwayhq/slipway/internal/plan/memory"
)

// Simulated durations. They determine the order of events and have no relation to real durations.
const (
	provisioning = 20 * time.Second
	preparing    = time.Second
	upgrading    = time.Minute
	joining      = 30 * time.Second
	removing     = 5 * time.Second
)

// role is the role of a kind in the contracts.
type role int

const (
	noRole role = iota
	infraCluster
	controlPlane
	infraMachine
	bootstrapConfig
	infraPool
	inventoryHost
)

// Providers simulates the providers of all objects: it observes the writes in a [World], and updates each provider
// object after a delay, as its contract requires (providerupdates.go, machinepools.go). It derives the role of each
// kind from the references to it.
type Providers struct {
	world     *World
	workloads *Workloads
	inventory Inventory
	roles     map[schema.GroupKind]role
}

// NewProviders simulates the providers of a world whose objects are already loaded. Package plan calls it for each run.
// The inventory is nil if no machines need hosts of one.
func NewProviders(w *World, workloads *Workloads, inventory Inventory) *Providers {
	p := &Providers{world: w, workloads: workloads, inventory: inventory, roles: map[schema.GroupKind]role{}}
	if inventory != nil {
		p.roles[inventory.HostKind()] = inventoryHost
	}
	all := w.API.All()
	for _, u := range all {
		p.recordRoles(u)
	}
	for _, u := range all {
		p.connectExisting(u)
	}
	w.Observe(p.observe)
	return p
}

// reference is a reference field of an object.
type reference struct {
	role role
	path []string
}

// references returns the fields of a core kind that reference provider objects, from the API of Cluster API.
func references(kind string) []reference {
	switch kind {
	case "Cluster":
		return []reference{{infraCluster, []string{"spec", "infrastructureRef"}}, {controlPlane, []string{"spec", "controlPlaneRef"}}}
	case "Machine":
		return []reference{{infraMachine, []string{"spec", "infrastructureRef"}}, {bootstrapConfig, []string{"spec", "bootstrap", "configRef"}}}
	case "MachinePool":
		return []reference{
			{infraPool, []string{"spec", "template", "spec", "infrastructureRef"}},
			{bootstrapConfig, []string{"spec", "template", "spec", "bootstrap", "configRef"}},
		}
	}
	return nil
}

// recordRoles records the roles of the kinds that an object references, and returns the referenced objects.
func (p *Providers) recordRoles(u *unstructured.Unstructured) []object {
	if u.GroupVersionKind().Group != clusterv1.GroupVersion.Group {
		return nil
	}
	var out []object
	for _, ref := range references(u.GetKind()) {
		to, _, _ := unstructured.NestedStringMap(u.Object, ref.path...)
		if to["kind"] == "" || to["name"] == "" {
			continue
		}
		kind := schema.GroupKind{Group: to["apiGroup"], Kind: to["kind"]}
		p.roles[kind] = ref.role
		out = append(out, object{kind.WithVersion(""), client.ObjectKey{Namespace: u.GetNamespace(), Name: to["name"]}})
	}
	return out
}

// connectExisting connects existing objects.
func (p *Providers) connectExisting(u *unstructured.Unstructured) {
	switch u.GroupVersionKind().GroupKind() {
	case clusterv1.GroupVersion.WithKind("Cluster").GroupKind():
		if isTrue(u, "status", "initialization", "controlPlaneInitialized") {
			p.workloads.Connect(client.ObjectKeyFromObject(u))
		}
	case clusterv1.GroupVersion.WithKind("Machine").GroupKind():
		p.rejoin(u)
	case clusterv1.GroupVersion.WithKind("MachinePool").GroupKind():
		p.rejoinPool(u)
	default:
		p.schedule(objectOf(u), u)
	}
}

// rejoin adds the existing Node of a Machine.
func (p *Providers) rejoin(u *unstructured.Unstructured) {
	m := &clusterv1.Machine{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, m); err != nil || !m.Status.NodeRef.IsDefined() {
		return
	}
	n := Node{Name: m.Status.NodeRef.Name, ProviderID: m.Spec.ProviderID, Version: m.Spec.Version}
	if m.Status.NodeInfo != nil && m.Status.NodeInfo.KubeletVersion != "" {
		n.Version = m.Status.NodeInfo.KubeletVersion
	}
	for _, c := range m.Status.Conditions {
		if c.Type == clusterv1.MachineNodeReadyCondition {
			n.Ready = c.Status
		}
	}
	cluster := client.ObjectKey{Namespace: m.Namespace, Name: m.Spec.ClusterName}
	p.workloads.Connect(cluster) // only a reachable cluster can have reported a Node
	p.workloads.AddNode(cluster, n)
}

// rejoinPool adds the existing Nodes of a pool. The mapping of Nodes to instances is irrelevant here.
func (p *Providers) rejoinPool(u *unstructured.Unstructured) {
	pool := &clusterv1.MachinePool{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, pool); err != nil {
		return
	}
	cluster := client.ObjectKey{Namespace: pool.Namespace, Name: pool.Spec.ClusterName}
	for i, node := range pool.Status.NodeRefs {
		if i < len(pool.Spec.ProviderIDList) {
			p.workloads.Connect(cluster)
			p.workloads.AddNode(cluster, Node{Name: node.Name, ProviderID: pool.Spec.ProviderIDList[i], Version: pool.Spec.Template.Spec.Version})
		}
	}
}

// observe schedules the simulated providers that a write affects.
func (p *Providers) observe(e memory.Event) {
	u := e.New
	if u == nil {
		p.removed(e.Old)
		return
	}
	if p.isHost(u) {
		p.hostChanged(u)
		return
	}
	if p.roles[e.Kind.GroupKind()] != noRole {
		p.schedule(objectOf(u), u)
		return
	}
	for _, o := range p.recordRoles(u) {
		if found := p.world.API.Lookup(o.kind.GroupKind(), o.key); found != nil {
			p.schedule(objectOf(found), found)
		}
	}
	if e.Kind.Kind == "Cluster" && e.Old != nil && initialization(e.Old) != initialization(u) {
		p.scheduleClusterObjects(client.ObjectKeyFromObject(u))
	}
}

// initialization returns the state of a Cluster that its objects wait for.
func initialization(u *unstructured.Unstructured) [3]bool {
	return [3]bool{
		isTrue(u, "status", "initialization", "infrastructureProvisioned"), isTrue(u, "status", "initialization", "controlPlaneInitialized"),
		isTrue(u, "spec", "paused"),
	}
}

func (p *Providers) scheduleClusterObjects(cluster client.ObjectKey) {
	for _, u := range p.world.API.All() {
		if p.roles[u.GroupVersionKind().GroupKind()] != noRole && clusterOf(u) == cluster {
			p.schedule(objectOf(u), u)
		}
	}
}

// removed cleans up after a removed object.
func (p *Providers) removed(u *unstructured.Unstructured) {
	switch p.roles[u.GroupVersionKind().GroupKind()] {
	case controlPlane, infraCluster:
		p.workloads.Disconnect(clusterOf(u))
	case infraMachine:
		if id, _, _ := unstructured.NestedString(u.Object, "spec", "providerID"); id != "" {
			p.workloads.RemoveNode(clusterOf(u), id)
		}
		p.releaseHost(u)
	}
}

// schedule simulates the provider of an object after a delay, if it has anything to do.
func (p *Providers) schedule(o object, u *unstructured.Unstructured) {
	part := p.roles[o.kind.GroupKind()]
	if part == noRole {
		return
	}
	d := p.next(part, u)
	if d == 0 {
		return
	}
	p.world.After(d, "play "+o.kind.GroupKind().String()+" "+o.key.String(), func() {
		now := p.world.API.Lookup(o.kind.GroupKind(), o.key)
		if now == nil || p.next(part, now) == 0 {
			return
		}
		next := now.DeepCopy()
		follows := p.simulate(part, next)
		if p.world.API.WriteAsSystem(next, "provider") != nil {
			return // a kind that cannot be read has no reader either
		}
		for _, f := range follows {
			f()
		}
		if now := p.world.API.Lookup(o.kind.GroupKind(), o.key); now != nil {
			p.schedule(o, now)
		}
	})
}

// next returns the delay until the provider acts on an object; 0: it has nothing to do.
func (p *Providers) next(part role, u *unstructured.Unstructured) time.Duration {
	if u.GetDeletionTimestamp() != nil {
		return removing
	}
	if p.isPaused(u) || len(u.GetOwnerReferences()) == 0 && part != inventoryHost {
		return 0
	}
	copied := u.DeepCopy()
	if p.simulate(part, copied); same(u, copied) {
		return 0
	}
	switch part {
	case bootstrapConfig, inventoryHost:
		return preparing
	case controlPlane:
		return upgrading
	}
	return provisioning
}

func (p *Providers) isPaused(u *unstructured.Unstructured) bool {
	if _, ok := u.GetAnnotations()[clusterv1.PausedAnnotation]; ok {
		return true
	}
	cluster := p.cluster(u)
	return cluster != nil && isTrue(cluster, "spec", "paused")
}

func (p *Providers) cluster(u *unstructured.Unstructured) *unstructured.Unstructured {
	return p.world.API.Lookup(clusterv1.GroupVersion.WithKind("Cluster").GroupKind(), clusterOf(u))
}

// owner returns the owner of a core kind. The simulated infrastructure machines and pools call it.
func (p *Providers) owner(u *unstructured.Unstructured, kind string) *unstructured.Unstructured {
	for _, ref := range u.GetOwnerReferences() {
		if ref.Kind == kind {
			return p.world.API.Lookup(clusterv1.GroupVersion.WithKind(kind).GroupKind(), client.ObjectKey{Namespace: u.GetNamespace(), Name: ref.Name})
		}
	}
	return nil
}

func isTrue(u *unstructured.Unstructured, path ...string) bool {
	value, _, _ := unstructured.NestedBool(u.Object, path...)
	return value
}

func set(u *unstructured.Unstructured, value any, path ...string) {
	_ = unstructured.SetNestedField(u.Object, value, path...) // an unexpected type at this path is outside the contract
}

// now returns the simulated time in API format.
func (p *Providers) now() string { return p.world.Now().UTC().Format(time.RFC3339) }

// setConditionTrue sets a condition to True. It changes nothing if the condition is already True. All simulated
// providers call it.
func (p *Providers) setConditionTrue(u *unstructured.Unstructured, kind string) {
	p.setCondition(u, map[string]any{"type": kind, "status": string(metav1.ConditionTrue), "reason": kind, "message": ""})
}

// setCondition sets a condition. It changes nothing if the status and the message are the same; no message equals any.
func (p *Providers) setCondition(u *unstructured.Unstructured, condition map[string]any) {
	list, _, _ := unstructured.NestedSlice(u.Object, "status", "conditions")
	for i, c := range list {
		m, _ := c.(map[string]any)
		if m["type"] == condition["type"] {
			if m["status"] == condition["status"] && (condition["message"] == "" || m["message"] == condition["message"]) {
				return
			}
			list = append(list[:i:i], list[i+1:]...)
			break
		}
	}
	condition["lastTransitionTime"] = p.now()
	set(u, append(list, condition), "status", "conditions")
}
