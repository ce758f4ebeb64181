// Package workload maintains one connection to the API server of every workload cluster ([Clusters]). It watches
// Clusters and their "<cluster>-kubeconfig" Secrets and connects as soon as the infrastructure is provisioned and the
// Secret exists. It probes each connection with GET /version and /api every 10 s (at the same time for many clusters),
// closes it after five consecutive failures, and reconnects with a backoff of 250 ms to 30 s; decide.go has the rules.
// Controllers get a client that reads watched kinds from a cache and other kinds live, an index of Nodes by provider
// ID, and events of the workload cluster in their own queue. Their objects are enqueued whenever a connection opens or
// closes, or its probes start or stop failing. The package writes no objects, does not follow redirects, and does not
// decide which conditions a lost connection affects; controllers derive that from [Health].
//
// Any user who can write the kubeconfig Secret of a cluster chooses its API server, so neither is trusted.
// [ParseKubeconfig] accepts embedded credentials and an https address only; it rejects commands and plugins, files,
// plain HTTP, unverified servers, impersonation, and proxies and addresses that the operator's policy does not allow.
// Errors of failed calls do not reveal why they failed (callerror.go). Calls are limited, so that slow clusters do not
// block the workers of a controller (limiter.go).
//
// Responses are limited in memory, because an empty JSON object of two bytes becomes a few hundred bytes when it is
// decoded. While a response is read, the memory of its values is estimated at every depth of nesting, for a whole
// response or for each event of a watch. A response that exceeds the limits fails. The memory of responses that are
// being decoded, and of cached objects, is charged to the account of the cluster (memoryaccount.go), which has a limit
// for the cluster and one for all clusters in its namespace:
//
//	bytes ──► transport ──► meter ──► limit per response, account ──► decoder ──► Retain: account, until garbage collected
package workload
