// Package extension serves a Runtime Extension: the HTTPS server that the hooks of the Runtime SDK call.
//
// Does: takes typed handlers ([On]), answers the Discovery hook from them, decodes requests and encodes responses,
// and serves all of it over TLS with certificates from files (read again when they change) or made on the spot,
// optionally for callers with a certificate of their own only. A panic of a handler becomes a response with status
// Failure; its stack is logged. Every call is logged and counted. A minimal extension:
//
//	x, err := extension.New(extension.On("check-quota", hooksv1.BeforeClusterCreate, checkQuota))
//	if err != nil { … }
//	err = x.Serve(ctx, extension.FromEnv(os.Getenv))
//
//	func checkQuota(ctx context.Context, in *hooksv1.BeforeClusterCreateRequest, out *hooksv1.BeforeClusterCreateResponse) {
//		extension.Log(ctx).Info("a cluster is about to be created", "cluster", in.Cluster.Name)
//		out.RetryAfterSeconds = 30 // or leave it: the response is Success
//	}
//
// Package topology, below this one, helps with the topology mutation hooks; package extensiontest runs handlers in
// tests without a network.
//
// Owns: the paths of the protocol, /healthz, /readyz and /metrics on its port.
//
// Never: talks to a management cluster. An extension needs no credentials to be called.
//
// Read first: [On], [New], [Extension.Serve].
package extension
