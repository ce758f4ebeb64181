// Package contract implements the provider contracts of Cluster API. It resolves the API version of a provider's kind
// that complies with a contract version ([Resolve]), and provides typed views of provider objects whose Go types are
// unknown: [InfraCluster], [InfraMachine], [InfraMachinePool], [BootstrapConfig], [ControlPlane]. A view is created
// from an [Object], and hides whether the provider uses contract v1beta1 or v1beta2. The rules of the contracts are
// available as data ([Rules]). All field paths of provider objects are defined in this package. It accesses no API
// server and does not modify objects, except for [ControlPlaneSpec.Set].
package contract
