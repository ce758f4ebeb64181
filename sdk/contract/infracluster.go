package contract

import (
	"cmp"
	"maps"
	"slices"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// InfraClusterView is an infrastructure cluster with the fields of the contract.
type InfraClusterView struct {
	Object
	// Provisioned is true once the infrastructure is provisioned.
	Provisioned Field[bool]
	// ControlPlaneEndpoint is set if the provider provides it.
	ControlPlaneEndpoint Field[Endpoint]
	// FailureDomains are sorted by name if the provider reports a map.
	FailureDomains Field[[]clusterv1.FailureDomain]
}

// InfraCluster returns the view of an infrastructure cluster.
func InfraCluster(o Object) InfraClusterView {
	return InfraClusterView{
		Object:               o,
		Provisioned:          o.flag("status.initialization.provisioned", "status.ready"),
		ControlPlaneEndpoint: read[Endpoint](o, "spec.controlPlaneEndpoint"),
		FailureDomains:       failureDomains(o),
	}
}

// NeedingEndpoint returns the view for a Cluster without an endpoint. An incomplete endpoint is an error once the
// infrastructure is provisioned.
func (v InfraClusterView) NeedingEndpoint() InfraClusterView {
	v.ControlPlaneEndpoint = whole(v.ControlPlaneEndpoint, v.Provisioned)
	return v
}

// Completion implements [View].
func (v InfraClusterView) Completion() Completion { return Completion{Flag: v.Provisioned} }

// Err implements [View].
func (v InfraClusterView) Err() error {
	return cmp.Or(v.Provisioned.Err(), v.ControlPlaneEndpoint.Err(), v.FailureDomains.Err())
}

// failureDomains reads the list of contract v1beta2, or the map of v1beta1 if the field is a map.
func failureDomains(o Object) Field[[]clusterv1.FailureDomain] {
	const path = "status.failureDomains"
	if raw, ok := dig(o.content(), []string{"status", "failureDomains"}); ok {
		if _, isMap := raw.(map[string]any); !isMap {
			return read[[]clusterv1.FailureDomain](o, path)
		}
	}
	type spec struct {
		ControlPlane *bool             `json:"controlPlane"`
		Attributes   map[string]string `json:"attributes"`
	}
	m := read[map[string]spec](o, path)
	out := Field[[]clusterv1.FailureDomain]{presence: m.presence, path: path, cause: m.cause}
	for _, name := range slices.Sorted(maps.Keys(m.value)) {
		out.value = append(out.value, clusterv1.FailureDomain{
			Name: name, ControlPlane: m.value[name].ControlPlane, Attributes: m.value[name].Attributes,
		})
	}
	return out
}
