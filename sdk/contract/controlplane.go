package contract

import (
	"cmp"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// ControlPlaneView is a control plane with the fields of the contract.
type ControlPlaneView struct {
	Object
	// Initialized is true once the API server is available and nodes can join.
	Initialized Field[bool]
	// Endpoint is set if the control plane provides it.
	Endpoint Field[Endpoint]
	// ExternalManaged control planes have no control plane Machines.
	ExternalManaged Field[bool]
	// SpecVersion and SpecReplicas are the desired values; missing if the kind does not have them.
	SpecVersion  Field[string]
	SpecReplicas Field[int32]
	// Versions are the running versions from the oldest to the newest. If the provider reports only the deprecated
	// status.version, it is the only element.
	Versions Field[[]clusterv1.StatusVersion]
	// Replica counters. In contract v1beta1, UpToDateReplicas is updatedReplicas, and AvailableReplicas is the desired
	// replicas minus unavailableReplicas, which includes replicas that do not exist yet.
	Replicas, ReadyReplicas, AvailableReplicas, UpToDateReplicas Field[int32]
}

// ControlPlane returns the view of a control plane.
func ControlPlane(o Object) ControlPlaneView {
	v := ControlPlaneView{
		Object:            o,
		Initialized:       o.flag("status.initialization.controlPlaneInitialized", "status.initialized"),
		Endpoint:          read[Endpoint](o, "spec.controlPlaneEndpoint"),
		ExternalManaged:   read[bool](o, "status.externalManagedControlPlane"),
		SpecVersion:       read[string](o, "spec.version"),
		SpecReplicas:      read[int32](o, "spec.replicas"),
		Versions:          versions(o),
		Replicas:          read[int32](o, "status.replicas"),
		ReadyReplicas:     read[int32](o, "status.readyReplicas"),
		AvailableReplicas: read[int32](o, "status.availableReplicas"),
		UpToDateReplicas:  read[int32](o, "status.upToDateReplicas"),
	}
	if o.Contract == V1Beta1 {
		v.UpToDateReplicas = read[int32](o, "status.updatedReplicas")
		v.AvailableReplicas = available(either(v.SpecReplicas, v.Replicas), read[int32](o, "status.unavailableReplicas"))
	}
	return v
}

// NeedingEndpoint returns the view for a Cluster without an endpoint. An incomplete endpoint is an error once the
// control plane is initialized.
func (v ControlPlaneView) NeedingEndpoint() ControlPlaneView {
	v.Endpoint = whole(v.Endpoint, v.Initialized)
	return v
}

// Completion implements [View].
func (v ControlPlaneView) Completion() Completion { return Completion{Flag: v.Initialized} }

// Err implements [View].
func (v ControlPlaneView) Err() error {
	return cmp.Or(v.Initialized.Err(), v.Endpoint.Err(), v.ExternalManaged.Err(), v.SpecVersion.Err(), v.SpecReplicas.Err(), v.Versions.Err(),
		v.Replicas.Err(), v.ReadyReplicas.Err(), v.AvailableReplicas.Err(), v.UpToDateReplicas.Err())
}

func versions(o Object) Field[[]clusterv1.StatusVersion] {
	list := read[[]clusterv1.StatusVersion](o, "status.versions")
	if list.presence == Found || list.presence == Unreadable {
		return list
	}
	one := read[string](o, "status.version")
	out := Field[[]clusterv1.StatusVersion]{presence: one.presence, path: one.path, cause: one.cause}
	if version, ok := one.Get(); ok {
		out.value = []clusterv1.StatusVersion{{Version: version, Replicas: read[int32](o, "status.replicas").Or(0)}}
	}
	return out
}

// available returns the number of available replicas, if both inputs are known. The result is limited to the range from
// zero to wanted, because the provider's value is not validated.
func available(wanted, unavailable Field[int32]) Field[int32] {
	n, ok := wanted.Get()
	down, counted := unavailable.Get()
	if !ok || !counted {
		return Field[int32]{presence: min(wanted.presence, unavailable.presence), path: unavailable.path, cause: cmp.Or(wanted.cause, unavailable.cause)}
	}
	wanted.value, wanted.path = int32(max(0, min(int64(n), int64(n)-int64(down)))), unavailable.path
	return wanted
}
