package topology

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/sdk/contract"
)

// Patched are the templates of the class with its patches applied, by the parts that are made from them.
type Patched map[Key]contract.Object

// Rotate gives each template whose spec changed the name of the one that takes its place, and reports whether there is any: patches
// see names, those of templates too, and have to be applied once more. The name is made from the one that is replaced and its new
// spec, as patched without the new names: it is the same after a crash, and another one after each change.
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

// Desire returns what the topology consists of, made from the patched templates. A part without a patched template is made from
// that of the class.
func (d *Draft) Desire(patched Patched) (Desired, error) {
	b := builder{Draft: d, patched: patched}
	infra := b.infraCluster()
	if err := b.sameKind(infra, b.live(infra.Key)); err != nil {
		return Desired{}, err
	}
	b.add(infra, b.live(infra.Key))
	if err := b.controlPlane(); err != nil {
		return Desired{}, err
	}
	for _, w := range d.deployments {
		if err := b.deployment(w); err != nil {
			return Desired{}, err
		}
	}
	for _, w := range d.pools {
		if err := b.pool(w); err != nil {
			return Desired{}, err
		}
	}
	return Desired{Parts: b.parts, Obsolete: d.obsolete(b.parts)}, nil
}

// builder adds parts to a desired state.
type builder struct {
	*Draft
	patched Patched
	parts   []Part
}

// keyed is an object of a part.
type keyed struct {
	Key
	want *unstructured.Unstructured
}

func (b *builder) add(k keyed, live client.Object) {
	b.parts = append(b.parts, Part{Key: k.Key, Want: k.want, Live: live, Frozen: b.isFrozen(k.Key)})
}

// isFrozen reports whether a part, or the worker that it belongs to, keeps its spec.
func (b *builder) isFrozen(key Key) bool {
	switch key.Role {
	case ControlPlaneMachines, ControlPlane:
		return b.Versions.Frozen[Key{Role: ControlPlane}]
	case ControlPlaneHealthCheck, DeploymentHealthCheck: // they replace nothing
		return false
	}
	return b.Versions.Frozen[key.OfWorker()]
}

// source returns the source of a part, and its template with the patches.
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

// live returns the object of a part that is no worker; nil: it does not exist.
func (b *builder) live(key Key) client.Object {
	live := contract.Object{}
	switch key.Role {
	case InfraCluster:
		live = b.Live.InfraCluster
	case ControlPlane:
		live = b.Live.ControlPlane
	case ControlPlaneMachines:
		live = b.Live.ControlPlaneMachines
	case DeploymentBootstrap:
		live = b.Live.Deployments[key.Worker].Bootstrap
	case DeploymentInfrastructure:
		live = b.Live.Deployments[key.Worker].Infrastructure
	case PoolBootstrap:
		live = b.Live.Pools[key.Worker].Bootstrap
	case PoolInfrastructure:
		live = b.Live.Pools[key.Worker].Infrastructure
	}
	if live.Unstructured == nil {
		return nil
	}
	return live.Unstructured
}

func (b *builder) infraCluster() keyed {
	source, patched := b.source(Key{Role: InfraCluster})
	want := b.created(source, patched, nil, nil)
	leaveEndpoint(want)
	want.SetOwnerReferences(b.ownerReference())
	return keyed{source.Key, want}
}

// leaveEndpoint leaves an endpoint that a template has empty to the provider.
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

// template adds a template of machines, and returns the reference to it. One of another name or kind takes the place of the present one.
func (b *builder) template(key Key) clusterv1.ContractVersionedObjectReference {
	source, patched := b.source(key)
	want, live := b.copied(source, patched), b.live(key)
	part := Part{Key: key, Want: want, Live: live, Frozen: b.isFrozen(key)}
	if live != nil && (live.GetName() != want.GetName() || isOtherKind(live, want)) && !part.Frozen {
		part.Live, part.Replaces = nil, live
	}
	b.parts = append(b.parts, part)
	return Reference(want)
}

// isOtherKind reports whether an object is of another kind than the one that takes its place.
func isOtherKind(live client.Object, want *unstructured.Unstructured) bool {
	return live.GetObjectKind().GroupVersionKind().GroupKind() != want.GroupVersionKind().GroupKind()
}

// sameKind is invalid where the class has another kind than the object that the Cluster refers to: that cannot be replaced.
func (b *builder) sameKind(k keyed, live client.Object) error {
	if live == nil || !isOtherKind(live, k.want) {
		return nil
	}
	return fault.New(fault.Invalid, "KindChanged", "the %s of the Cluster is %s %s, and ClusterClass %s has a template of %s: use a class with templates of the same kind",
		k.Key, live.GetObjectKind().GroupVersionKind().Kind, live.GetName(), b.Class.Name, k.want.GetKind())
}

// Reference is how objects of the core refer to an object.
func Reference(o *unstructured.Unstructured) clusterv1.ContractVersionedObjectReference {
	kind := o.GroupVersionKind()
	return clusterv1.ContractVersionedObjectReference{APIGroup: kind.Group, Kind: kind.Kind, Name: o.GetName()}
}
