// Package answers limits the memory that responses from workload clusters use. While a response is read and before it
// is decoded, the package estimates the memory of its values at every depth of nesting, for a whole response or for
// each event of a watch. A response beyond the [responseLimits] fails. The estimated memory of responses that are being
// decoded, and the memory of objects in caches, is charged to the [memoryAccount] of the cluster, which has a limit for the
// cluster and one for all clusters in its namespace.
//
//	bytes ──► transport ──► meter ──► limit per response, account ──► decoder ──► Retain: account, until garbage collected
//
// The limits are necessary because any user who can write the kubeconfig Secret of a cluster chooses the API server,
// and an empty JSON object of two bytes becomes a few hundred bytes in memory. The package does not limit the number of
// calls; package remote does.
package workload
