// Package answers bounds the memory that answers of workload clusters take.
//
// # Does
//
// Estimates, while an answer is read and before it is decoded, how much memory its values will take, at every depth of
// nesting, for each event of a watch and for every other answer as a whole. An answer beyond the [Limits] ends with a fault.
// What is being decoded, and what caches hold of it afterwards, is charged to the [Account] of the cluster, which has a limit
// for the cluster and one for all clusters of its namespace.
//
//	bytes ──► transport ──► meter ──► limit of one answer, account ──► decoder ──► Retain: account, until it is garbage
//
// Who writes the kubeconfig Secret of a cluster chooses the API, and an empty object of two bytes becomes some hundred in
// memory.
//
// # Never
//
// Decodes an answer, or limits how many calls are made (package remote does).
//
// # Read first
//
// [Transport], then meter.go.
package answers
