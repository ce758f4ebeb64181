// Package answers bounds what the API of a workload cluster may answer.
//
// Does: counts the bytes and objects of an answer before it is decoded, and ends an answer beyond the [Limits] with a fault.
// Who writes the kubeconfig Secret of a cluster chooses the API, and every byte and object of an answer is memory of this
// process.
//
// Never: decodes an answer, or limits how many calls are made (package remote does).
//
// Read first: [Bound].
package answers
