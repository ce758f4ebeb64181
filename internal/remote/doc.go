// Package remote keeps one connection to the API of every workload cluster.
//
// # Does
//
// Watches Clusters and their "<cluster>-kubeconfig" Secrets, connects as soon
// as the infrastructure is provisioned and the Secret is there, probes each
// connection (GET /version and /api every 10 s, those of many clusters at the same moments),
// gives it up after five failures in a row, and connects again with a backoff
// that begins at 250 ms and ends at 30 s.
// Controllers get a client that reads from a cache what is watched and
// everything else live, a Node index by provider ID, events of the workload
// cluster in their own queue, and their objects enqueued whenever a connection
// opens, closes, or begins or ceases to fail. Calls are limited, so that slow
// clusters do not keep the workers of a controller from the others (limiter.go),
// and what clusters send has to fit into the memory of their namespace (package answers).
//
// # Owns
//
// The metrics capi_cluster_cache_healthcheck, capi_cluster_cache_healthchecks_total
// and capi_cluster_cache_connection_up. It writes no object.
//
// # Never
//
// Writes to either API, decides what a lost connection means for a condition
// (the controllers do, from Health), parses a kubeconfig (package kubeconfig does,
// by rules for what others write), or follows a redirect.
//
// # Read first
//
// decide.go (when to connect, probe, give up), then connection.go.
package remote
