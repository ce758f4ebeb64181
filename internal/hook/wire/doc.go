// Package wire makes one exchange with an extension: a JSON document there, one back.
//
// Does: turns the clientConfig of an ExtensionConfig into an [Endpoint]; posts over HTTPS of TLS 1.2 or newer, with the
// extension's own CA bundle, a client certificate that is read again when its files change, connections that are
// kept and used again, no redirects, and an answer of at most 20 MiB. Every way to fail becomes a fault with a
// message that is the same each time: no ports of our side, no times.
//
// Owns: the connections to one extension ([Conn]).
//
// Never: knows hooks, tries again what failed (net/http repeats a request on a kept connection that turns out to be closed:
// [Conn.Post]), or says anything of the documents it carries.
//
// Read first: [Conn.Post], then classify.go.
package wire
