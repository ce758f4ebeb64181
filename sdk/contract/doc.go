// Package contract is the provider contracts of Cluster API as code.
//
// Does: finds which API version of a provider's kind fulfils which contract version ([Resolve]), and gives
// typed views of provider objects whose Go types no one knows: [InfraCluster], [InfraMachine],
// [InfraMachinePool], [BootstrapConfig], [ControlPlane]. A view is made once from an [Object]; after that
// no caller needs to know whether the provider follows contract v1beta1 or v1beta2. The rules themselves
// are data ([Rules]), each with its id.
//
// Owns: every field path of provider objects. No other package names one.
//
// Never: talks to an API server, or changes an object.
//
// Read first: [Object], [Field], then one of the views.
package contract
