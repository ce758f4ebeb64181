package topology

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/sdk/contract"
)

// Patched holds the templates of the class after its patches were applied, by part. [Draft.Patch] returns it.
type Patched map[Key]contract.Object

// Rotate assigns a new name to each template whose spec changed, and reports whether there is any. The topology
// controller calls it after [Draft.Patch], and then Patch once more if it returns true, because patches may read names,
// including names of templates. The new name is derived from the old name and the new spec, as patched with the old
// names: it is the same after a crash, and differs after each change.
func (d *Draft) Rotate(patched Patched) (bool, error) {
	b, rotated := builder{Draft: d, patched: patched}, false
	for _, source := range d.Sources {
		live := b.live(source.Key)
		if live == nil || !source.Role.IsTemplate() || !b.Changed[source.Key] || b.isFrozen(source.Key) || live.GetName() != d.Names[source.Key] {
			continue
		}
		_, template := b.source(source.Key)
		name, err := d.namer.revision(source.Key, []any{live.GetName(), template.Object["spec"]})
		if err != nil {
			return false, err
		}
		d.Names[source.Key], rotated = name, true
	}
	return rotated, nil
}

// DesiredState returns the desired objects of the topology, created from the patched templates. A part without a
// patched template uses the template of the class. It is the last step of the computation; the topology controller
// compares the result with the existing objects and writes the differences.
func (d *Draft) DesiredState(patched Patched) (Desired, error) {
	b := builder{Draft: d, patched: patched}
	infra := b.infraCluster()
	if err := b.sameKind(infra, b.live(infra.Key)); err != nil {
		return Desired{}, err
	}
	b.add(infra, b.live(infra.Key))
	if err := b.controlPlane(); err != nil {
		return Desired{}, err
	}
	for _, w := range d.workers {
		add := b.deployment
		if w.Role == Pool {
			add = b.pool
		}
		if err := add(w); err != nil {
			return Desired{}, err
		}
	}
	return Desired{Parts: b.parts, Obsolete: d.obsolete(b.parts)}, nil
}

// builder adds parts to a desired state. Its methods for each part are in desired.go, controlplane.go, workers.go and
// healthcheck.go.
type builder struct {
	*Draft
	patched Patched
	parts   []Part
}

// keyed is the object of a part. The [builder] passes it to add together with the existing object.
type keyed struct {
	Key
	want *unstructured.Unstructured
}

func (b *builder) add(k keyed, live client.Object) {
	b.parts = append(b.parts, Part{Key: k.Key, Want: k.want, Live: live, Frozen: b.isFrozen(k.Key)})
}

// isFrozen reports whether the spec of a part, or of its worker, must not change now.
func (b *builder) isFrozen(key Key) bool {
	switch key.Role {
	case controlPlaneMachines, ControlPlane:
		return b.Versions.Frozen[Key{Role: ControlPlane}]
	case ControlPlaneHealthCheck, deploymentHealthCheck: // changing them replaces no Machine
		return false
	}
	return b.Versions.Frozen[key.OfWorker()]
}

// source returns the source of a part, and its patched template.
func (b *builder) source(key Key) (Source, contract.Object) {
	for _, source := range b.Sources {
		if source.Key == key {
			if patched, ok := b.patched[key]; ok {
				return source, patched
			}
			return source, source.Template
		}
	}
	return Source{Key: key}, contract.Object{}
}

// live returns the existing object of a part that is not a worker, or nil.
func (b *builder) live(key Key) client.Object {
	live := contract.Object{}
	switch key.Role {
	case InfraCluster:
		live = b.Live.InfraCluster
	case ControlPlane:
		live = b.Live.ControlPlane
	case controlPlaneMachines:
		live = b.Live.ControlPlaneMachines
	case deploymentBootstrap, poolBootstrap:
		live = b.Live.worker(key.OfWorker()).Bootstrap
	case deploymentInfrastructure, poolInfrastructure:
		live = b.Live.worker(key.OfWorker()).Infrastructure
	}
	if live.Unstructured == nil {
		return nil
	}
	return live.Unstructured
}

func (b *builder) infraCluster() keyed {
	source, patched := b.source(Key{Role: InfraCluster})
	want := b.newObject(source, patched, nil, nil)
	leaveEndpoint(want)
	want.SetOwnerReferences(b.ownerReference())
	return keyed{source.Key, want}
}

// leaveEndpoint removes endpoint fields that are empty in a template, so that the provider sets them.
func leaveEndpoint(o *unstructured.Unstructured) {
	endpoint, found, err := unstructured.NestedMap(o.Object, "spec", "controlPlaneEndpoint")
	if err != nil || !found {
		return
	}
	for field, value := range endpoint {
		if value == "" || value == int64(0) || value == float64(0) || value == nil {
			unstructured.RemoveNestedField(o.Object, "spec", "controlPlaneEndpoint", field)
			delete(endpoint, field)
		}
	}
	if len(endpoint) == 0 {
		unstructured.RemoveNestedField(o.Object, "spec", "controlPlaneEndpoint")
	}
}

// template adds a template of Machines, and returns a reference to it. A template with another name or kind replaces
// the existing one. The [builder] calls it for the machines of the control plane and of each MachineDeployment.
func (b *builder) template(key Key) clusterv1.ContractVersionedObjectReference {
	source, patched := b.source(key)
	want, live := b.newTemplate(source, patched), b.live(key)
	part := Part{Key: key, Want: want, Live: live, Frozen: b.isFrozen(key)}
	if live != nil && (live.GetName() != want.GetName() || isOtherKind(live, want)) && !part.Frozen {
		part.Live, part.Replaces = nil, live
	}
	b.parts = append(b.parts, part)
	return Reference(want)
}

// isOtherKind reports whether an object has another kind than its replacement.
func isOtherKind(live client.Object, want *unstructured.Unstructured) bool {
	return live.GetObjectKind().GroupVersionKind().GroupKind() != want.GroupVersionKind().GroupKind()
}

// sameKind returns an error if the class has another kind than the object that the Cluster references, because that
// object cannot be replaced.
func (b *builder) sameKind(k keyed, live client.Object) error {
	if live == nil || !isOtherKind(live, k.want) {
		return nil
	}
	return fault.New(fault.Invalid, "KindChanged", "the %s of the Cluster is %s %s, and ClusterClass %s uses kind %s: use a class with templates of the same kind",
		k.Key, live.GetObjectKind().GroupVersionKind().Kind, live.GetName(), b.Class.Name, k.want.GetKind())
}

// Reference returns a reference to an object, as core objects use it. The topology controller also compares references
// with it before it deletes a template.
func Reference(o *unstructured.Unstructured) clusterv1.ContractVersionedObjectReference {
	kind := o.GroupVersionKind()
	return clusterv1.ContractVersionedObjectReference{APIGroup: kind.Group, Kind: kind.Kind, Name: o.GetName()}
}
