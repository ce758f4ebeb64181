// Package issuer is an OpenID Connect provider for tests.
//
// Does: serves its metadata and its key over TLS on loopback, and signs tokens.
//
// Never: leaves loopback.
//
// Read first: Start.
package issuer
