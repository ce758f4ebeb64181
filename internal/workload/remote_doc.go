// Package remote maintains one connection to the API server of every workload cluster ([Clusters]). It watches Clusters
// and their "<cluster>-kubeconfig" Secrets and connects as soon as the infrastructure is provisioned and the Secret
// exists. It probes each connection with GET /version and /api every 10 s (at the same time for many clusters), closes
// it after five consecutive failures, and reconnects with a backoff of 250 ms to 30 s.
//
// Controllers get a client that reads watched kinds from a cache and other kinds live, an index of Nodes by provider
// ID, and events of the workload cluster in their own queue. Their objects are enqueued whenever a connection opens or
// closes, or its probes start or stop failing. Calls are limited, so that slow clusters do not block the workers of a
// controller (limiter.go), and responses of a cluster are limited to the memory available to its namespace (package
// answers).
//
// The package writes no objects, does not follow redirects, and does not decide which conditions a lost connection
// affects; controllers derive that from [Health]. It exposes the metrics capi_cluster_cache_healthcheck,
// capi_cluster_cache_healthchecks_total and capi_cluster_cache_connection_up. decide.go has the rules for when to
// connect, probe and disconnect.
package workload
