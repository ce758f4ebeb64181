// Package expiry finds out until when the API servers of a control plane can show their certificates.
//
// Does: connects to the API server's Pod of a Node, through a forwarded port, and reads the certificate that it presents ([Reader.Of]).
// One that has expired is read like any other: that is when it matters most.
//
// Never: decides whether a Machine has to be replaced (package rollout does), or believes a certificate that the authority of the
// cluster has not signed.
//
// Read first: [Reader.Of].
package expiry
