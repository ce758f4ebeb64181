package clone

import (
	"cmp"
	"context"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/kube"
	"github.com/slipwayhq/slipway/internal/reconciler/ownership"
	"github.com/slipwayhq/slipway/sdk/contract"
)

// Key identifies a clone.
type Key struct{ Kind, Name string }

// Clones are the bootstrap configs and infrastructure machines of an owner's Machines. [Reader.Read] returns them, and
// package machines compares them with the desired metadata.
type Clones struct {
	// Items contains the clones by kind and name.
	Items map[Key]contract.Object
	// Orphans are clones without a Machine that the owner still controls, sorted by kind and name.
	Orphans []contract.Object
	// Stale contains the clones for which the cache does not show this process's last write yet.
	Stale map[Key]bool
}

// Query specifies which clones to read.
type Query struct {
	// Namespace, Owner and Labels of the clones.
	Namespace string
	Owner     types.UID
	Labels    client.MatchingLabels
	// Templates determine the kinds of the clones.
	Templates Templates
	// Machines are the owner's Machines. Their clones are read even without the labels.
	Machines []*clusterv1.Machine
	// Reserved contains names of Machines that the owner may not control, or that the cache does not show yet.
	Reserved []string
}

// Reader reads clones for the MachineSet and KubeadmControlPlane controllers. Reading them is too expensive to do in
// every reconciliation.
type Reader struct {
	References *kube.References
	Writes     *kube.Writes
}

// Read reads the clones of an owner's Machines: clones with the labels, and clones that the Machines reference,
// such as those of adopted Machines. The MachineSet and KubeadmControlPlane controllers call it, but not in every
// reconciliation.
func (r Reader) Read(ctx context.Context, q Query) (*Clones, error) {
	c := &Clones{Items: map[Key]contract.Object{}, Stale: map[Key]bool{}}
	for _, t := range q.Templates {
		if !t.Ref.IsDefined() {
			continue
		}
		kind := Ref(t.Ref, "")
		list, err := r.References.List(ctx, kind.APIGroup, kind.Kind, q.Namespace, q.Labels)
		if err != nil && fault.KindOf(err) != fault.Invalid { // a kind that is not installed has no objects
			return nil, err
		}
		for _, o := range list {
			r.add(c, o)
		}
	}
	for _, m := range q.Machines {
		for _, ref := range Refs(m) {
			if _, ok := c.Items[Key{ref.Kind, ref.Name}]; ok || !m.DeletionTimestamp.IsZero() {
				continue
			}
			o, err := r.References.GetReferenced(ctx, m, ref)
			if err != nil {
				return nil, err
			}
			if o.Presence() == contract.Found {
				r.add(c, o)
			}
		}
	}
	c.Orphans = c.FindOrphans(q)
	return c, nil
}

func (r Reader) add(c *Clones, o contract.Object) {
	key := Key{o.GetKind(), o.GetName()}
	c.Items[key], c.Stale[key] = o, r.Writes.Stale(o)
}

// InfrastructureOf returns the infrastructure machine of a Machine, or the zero value if it was not read. The
// KubeadmControlPlane controller calls it.
func (c *Clones) InfrastructureOf(m *clusterv1.Machine) contract.Object {
	if c == nil || m == nil {
		return contract.Object{}
	}
	return c.Items[Key{m.Spec.InfrastructureRef.Kind, m.Spec.InfrastructureRef.Name}]
}

// NeverJoins reports whether a Machine has no Node and cannot get one, because its bootstrap failed. The
// KubeadmControlPlane controller replaces such Machines.
func (c *Clones) NeverJoins(m *clusterv1.Machine) bool {
	infra := c.InfrastructureOf(m)
	return infra.Unstructured != nil && !m.Status.NodeRef.IsDefined() && contract.InfraMachine(infra).Failed
}

// FindOrphans returns the clones that the owner still controls and that no Machine references, because their
// Machine was never created.
func (c *Clones) FindOrphans(q Query) []contract.Object {
	used, names := map[Key]bool{}, map[string]bool{}
	for _, name := range q.Reserved {
		names[name] = true
	}
	for _, m := range q.Machines {
		names[m.Name] = true
		for _, ref := range Refs(m) {
			used[Key{ref.Kind, ref.Name}] = true
		}
	}
	var out []contract.Object
	for _, key := range slices.SortedFunc(maps.Keys(c.Items), Key.compare) {
		o := c.Items[key]
		if !used[key] && !names[key.Name] && o.GetDeletionTimestamp().IsZero() && ownership.ControllerOf(o, q.Owner) == ownership.ThisController {
			out = append(out, o)
		}
	}
	return out
}

// Needs reports whether a clone was read and lacks the metadata. Clones that are being deleted, and clones whose
// last write the cache does not show yet, need no update now. Package machines calls it to plan the writes.
func (c *Clones) Needs(key Key, m Metadata) bool {
	o, ok := c.Items[key]
	return ok && !c.Stale[key] && o.GetDeletionTimestamp().IsZero() && !m.IsCurrent(o.Unstructured)
}

// Refs returns the references of a Machine to its clones. Package machines reads and updates the clones of a Machine by
// them.
func Refs(m *clusterv1.Machine) []clusterv1.ContractVersionedObjectReference {
	var out []clusterv1.ContractVersionedObjectReference
	for _, ref := range []clusterv1.ContractVersionedObjectReference{m.Spec.Bootstrap.ConfigRef, m.Spec.InfrastructureRef} {
		if ref.IsDefined() {
			out = append(out, ref)
		}
	}
	return out
}

func (k Key) compare(other Key) int {
	return cmp.Or(cmp.Compare(k.Kind, other.Kind), cmp.Compare(k.Name, other.Name))
}
