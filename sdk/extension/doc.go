// Package extension serves a Runtime Extension: the HTTPS server for the hooks of the Runtime SDK. It accepts typed
// handlers ([On], [OnErr]), responds to the Discovery hook, decodes requests and encodes responses, and serves with
// TLS. Certificates are generated, or read from files and reloaded when they change; client certificates can be
// required. A panic of a handler results in a response with status Failure, and its stack is logged. Every call is
// logged and counted. The context of a call ends with the timeout of its handler, and has a logger ([Log], also for
// logr) and the trace of the caller ([TraceOf]). A minimal extension:
//
//	x, err := extension.New(extension.OnErr("check-quota", hooksv1.BeforeClusterCreate, checkQuota))
//	if err != nil { … }
//	err = x.Serve(ctx, extension.FromEnv(os.Getenv))
//
//	func checkQuota(ctx context.Context, in *hooksv1.BeforeClusterCreateRequest, out *hooksv1.BeforeClusterCreateResponse) error {
//		extension.Log(ctx).Info("a cluster is about to be created", "cluster", in.Cluster.Name)
//		free, err := freeNodes(ctx) // an error becomes a response with status Failure
//		if err == nil && free == 0 {
//			extension.Hold(out, 30*time.Second, "no nodes are free") // otherwise the response is Success
//		}
//		return err
//	}
//
// Subpackages: topology supports the topology mutation hooks, upgradeplan upgrade plans, inplace in-place updates of
// Machines, and background work that takes longer than a call; extensiontest tests handlers without a network.
//
// The server provides the paths of the protocol, /healthz, /readyz and /metrics on its port. It does not access a
// management cluster, so an extension needs no credentials to be called.
package extension
