// Package provider is a small provider that is not Slipway's: infrastructure, bootstrap and control plane of clusters that exist in
// the API alone, in contract v1beta2 (Fake kinds) and v1beta1 (Old kinds), in the groups that Cluster API's own providers use and in
// one of its own. It is written as others write theirs, with controller-runtime and from the pages of the contract alone.
//
// Does: waits for owners, labels, bootstrap data and the Cluster as the contract says, pauses, provisions, makes a Node for each
// machine, and goes in the order of deletion. What Slipway does against the contract it notes ([Provider.Violations]).
//
//	FakeCluster  FakeMachine  FakeMachinePool  FakeConfig  FakeControlPlane   contract v1beta2, API version v1alpha3
//	OldCluster   OldMachine   OldMachinePool   OldConfig   OldControlPlane    contract v1beta1, API version v1beta1
//	FooCluster                                                              group infrastructure.foo.example
//
// Owns: its kinds, the Nodes of its machines, and the Secrets of its configs and control planes.
//
// Never: touches an object with the annotation [HandsOff]: a test plays the provider there; has a timer.
//
// Read first: [Kinds], then watches.go and roles.go.
package provider
