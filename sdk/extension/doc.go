// Package extension serves a Runtime Extension: the HTTPS server that the hooks of the Runtime SDK call.
//
// Does: takes typed handlers ([On], [OnErr]), answers the Discovery hook from them, decodes requests and encodes responses,
// and serves all of it over TLS with certificates from files (read again when they change) or made on the spot,
// optionally for callers with a certificate of their own only. A panic of a handler becomes a response with status
// Failure; its stack is logged. Every call is logged and counted. The context of a call ends with the timeout of its
// handler, and has a logger ([Log], also for logr) and the trace of the caller ([TraceOf]). A minimal extension:
//
//	x, err := extension.New(extension.OnErr("check-quota", hooksv1.BeforeClusterCreate, checkQuota))
//	if err != nil { … }
//	err = x.Serve(ctx, extension.FromEnv(os.Getenv))
//
//	func checkQuota(ctx context.Context, in *hooksv1.BeforeClusterCreateRequest, out *hooksv1.BeforeClusterCreateResponse) error {
//		extension.Log(ctx).Info("a cluster is about to be created", "cluster", in.Cluster.Name)
//		free, err := freeNodes(ctx) // an error becomes a response with status Failure
//		if err == nil && free == 0 {
//			extension.Hold(out, 30*time.Second, "no nodes are free") // without, the response is Success
//		}
//		return err
//	}
//
// Below this package, topology helps with the topology mutation hooks, upgradeplan with upgrade plans, inplace with updates of
// Machines in place, and background with work that takes longer than a call; extensiontest runs handlers in tests without a
// network.
//
// Owns: the paths of the protocol, /healthz, /readyz and /metrics on its port.
//
// Never: talks to a management cluster. An extension needs no credentials to be called.
//
// Read first: [OnErr], [New], [Extension.Serve], [Config].
package extension
