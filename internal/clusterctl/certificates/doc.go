// Package certificates satisfies the objects of cert-manager that providers bring, with or without cert-manager.
//
// Does: says which steps a management cluster needs first:
//
//	builtin    small CRDs of our own for Issuer, ClusterIssuer and Certificate; [Reconcile] issues what they ask for
//	install    cert-manager itself, as the configuration file says
//	external   none
//	automatic  builtin where our kinds are, external where cert-manager works, else install
//
// Reconcile issues and renews the Secrets of Certificates, from issuers of the kinds selfSigned and ca, and writes authorities
// into the webhook configurations and CRDs whose annotation cert-manager.io/inject-ca-from names a Certificate. A [Keeper]
// does so for as long as a management cluster runs, and brings the kinds at its start.
//
// Owns: with the field manager slipway-certificates, the Secrets of Certificates, the status of Certificates and Issuers, and
// caBundle of what is annotated.
//
// Never: touches objects of a cert-manager that is installed; overwrites a Secret that was not issued for the Certificate.
//
// Read first: [Reconcile], then decide.go.
package certificates
