package world

import (
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slipwayhq/slipway/sdk/contract"
)

// instance is an instance of a pool, with or without an infrastructure machine.
type instance struct {
	id   string
	node Node
	// machine is the name of the infrastructure machine, or empty if the provider creates none.
	machine string
}

// playInfraPool acts as the infrastructure provider of a MachinePool in the simulation of `slipway plan` ([Providers]):
// it creates the requested number of instances, and replaces instances with another version. It changes only the object
// in memory. [Providers.simulate] returns the functions to its caller, which calls them after it has stored the object.
// Cluster API's contract for MachinePools defines the fields and the order.
func (p *Providers) playInfraPool(u *unstructured.Unstructured) (follows []func()) {
	pool, cluster := p.owner(u, "MachinePool"), p.cluster(u)
	if pool == nil || cluster == nil || !isTrue(cluster, "status", "initialization", "infrastructureProvisioned") {
		return nil
	}
	if data, _, _ := unstructured.NestedString(pool.Object, "spec", "template", "spec", "bootstrap", "dataSecretName"); data == "" {
		return nil
	}
	replicas, asked, _ := unstructured.NestedInt64(pool.Object, "spec", "replicas")
	if !asked {
		replicas = 1
	}
	version, _, _ := unstructured.NestedString(pool.Object, "spec", "template", "spec", "version")
	have, _, _ := unstructured.NestedStringSlice(u.Object, "spec", "providerIDList")
	kept := p.current(clusterOf(u), have, version)
	kept = kept[:min(len(kept), int(replicas))]
	var added []instance
	for n := 0; int64(len(kept)+len(added)) < replicas; n++ {
		if one := p.instance(u, version, n); !slices.Contains(have, one.id) {
			added = append(added, one)
		}
	}
	provisioned := isTrue(u, "status", "ready") || isTrue(u, "status", "initialization", "provisioned")
	if provisioned && len(added) == 0 && len(kept) == len(have) {
		return nil
	}
	list := make([]any, 0, replicas)
	for _, id := range kept {
		list = append(list, id)
	}
	for _, one := range added {
		list = append(list, one.id)
		follows = append(follows, p.startInstance(u, pool, one))
	}
	for _, id := range have {
		if !slices.Contains(kept, id) {
			follows = append(follows, p.removeInstance(u, pool, id))
		}
	}
	set(u, list, "spec", "providerIDList")
	set(u, replicas, "status", "replicas")
	done(u, "provisioned")
	p.setConditionTrue(u, clusterv1.ReadyCondition)
	return follows
}

// machineKind returns the kind of the infrastructure machines of a pool, or an empty string if its provider creates
// none.
func machineKind(u *unstructured.Unstructured) string {
	kind, _, _ := unstructured.NestedString(u.Object, "status", "infrastructureMachineKind")
	return kind
}

// instance returns the n-th instance of a version.
func (p *Providers) instance(u *unstructured.Unstructured, version string, n int) instance {
	one := instance{
		id:   fmt.Sprintf("whatif://%s/%s/%s/%d", u.GetNamespace(), u.GetName(), version, n),
		node: Node{Name: fmt.Sprintf("%s-%s-%d", u.GetName(), version, n), Version: version},
	}
	if machineKind(u) != "" {
		one.machine = one.node.Name
		member := &unstructured.Unstructured{}
		member.SetNamespace(u.GetNamespace())
		member.SetName(one.machine)
		one.id = providerID(member)
	}
	one.node.ProviderID = one.id
	return one
}

// startInstance returns a function to call after an instance started: it creates the infrastructure machine, and later
// the Node.
func (p *Providers) startInstance(u, pool *unstructured.Unstructured, one instance) func() {
	joins := p.joins(clusterOf(u), one.node)
	if one.machine == "" {
		return joins
	}
	m := &unstructured.Unstructured{}
	m.SetGroupVersionKind(u.GroupVersionKind().GroupVersion().WithKind(machineKind(u)))
	m.SetNamespace(u.GetNamespace())
	m.SetName(one.machine)
	m.SetLabels(memberLabels(u, pool))
	set(m, p.memberSpec(u, pool), "spec")
	set(m, one.id, "spec", "providerID")
	done(m, "provisioned")
	p.setConditionTrue(m, clusterv1.ReadyCondition)
	return func() {
		_ = p.world.API.WriteAsSystem(m, "provider") // if the kind is missing, there are Nodes without Machines
		joins()
	}
}

// memberSpec returns the spec of a new infrastructure machine: the spec of another one in the pool, or else the
// template of the pool if it has one.
func (p *Providers) memberSpec(u, pool *unstructured.Unstructured) map[string]any {
	for _, other := range p.members(u, pool) {
		if spec, ok, _ := unstructured.NestedMap(other.Object, "spec"); ok {
			return spec
		}
	}
	template, _, _ := unstructured.NestedMap(u.Object, "spec", "template")
	if spec, ok := template["spec"].(map[string]any); ok {
		return spec
	}
	if template == nil {
		return map[string]any{}
	}
	delete(template, "metadata")
	return template
}

// memberLabels returns the labels of the infrastructure machines and the Machines of a pool.
func memberLabels(u, pool *unstructured.Unstructured) map[string]string {
	return map[string]string{
		clusterv1.ClusterNameLabel:     clusterOf(u).Name,
		clusterv1.MachinePoolNameLabel: contract.LabelValue(pool.GetName()),
	}
}

// removeInstance returns a function to call for an instance that is to be removed. As the contract requires, it deletes
// the Machine, which removes the rest. Without a Machine it removes the infrastructure machine or the Node.
func (p *Providers) removeInstance(u, pool *unstructured.Unstructured, id string) func() {
	key := clusterOf(u)
	return func() {
		member := p.member(u, pool, id)
		if member == nil {
			p.workloads.RemoveNode(key, id)
			return
		}
		at := client.ObjectKeyFromObject(member)
		if machine := p.owner(member, "Machine"); machine != nil {
			_ = p.world.API.Remove(machine.GroupVersionKind(), at, "provider")
			return
		}
		_ = p.world.API.Remove(member.GroupVersionKind(), at, "provider")
	}
}

// member returns the infrastructure machine of an instance.
func (p *Providers) member(u, pool *unstructured.Unstructured, id string) *unstructured.Unstructured {
	for _, m := range p.members(u, pool) {
		if have, _, _ := unstructured.NestedString(m.Object, "spec", "providerID"); have == id {
			return &m
		}
	}
	return nil
}

// members returns the infrastructure machines of a pool.
func (p *Providers) members(u, pool *unstructured.Unstructured) []unstructured.Unstructured {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(u.GroupVersionKind().GroupVersion().WithKind(machineKind(u) + "List"))
	if machineKind(u) == "" || p.world.API.Reader(nil).List(context.Background(), list,
		client.InNamespace(u.GetNamespace()), client.MatchingLabels(memberLabels(u, pool))) != nil { // the kind is not installed
		return nil
	}
	return list.Items
}

// current returns the instances whose Node runs the version or is unknown.
func (p *Providers) current(cluster client.ObjectKey, ids []string, version string) []string {
	var out []string
	for _, id := range ids {
		nodes, err := p.workloads.Nodes(context.Background(), cluster, id)
		if err != nil || len(nodes) == 0 || version == "" || nodes[0].Status.NodeInfo.KubeletVersion == version {
			out = append(out, id)
		}
	}
	return out
}
