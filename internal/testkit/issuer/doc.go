// Package issuer is an OpenID Connect provider for tests. It serves its metadata and signing key over TLS on loopback
// only, and signs tokens. Start with [Start] and [Server.Token].
package issuer
