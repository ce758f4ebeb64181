// Package rebuild recovers a control plane whose etcd has lost its quorum, for people who ask for it.
//
// Does: asks the control plane to survey the members that are left, chooses the one that has most, and says what would be kept, what
// would be lost and what is not known ([Order.Prepare]). Asks for the recovery and follows it until the control plane is whole
// ([Order.Run]).
//
// Never: reaches a node, or changes a Machine: the controllers do.
//
// Read first: [Plan].
package rebuild
