// Package componentfile is the files that kube-apiserver of a hosted control plane reads.
//
// Does: makes the audit policy, the configurations of authentication, of admission and of encryption from the typed fields
// of a HostedControlPlane, and says what Kubernetes' own validation finds wrong with them. The API server is a process of
// the host: what it reads is only ever encoded from values that are known here, never a tenant's text.
//
// Owns: the form of the files, the default audit policy, the form of encryption keys.
//
// Never: writes a file, or decides which issuers the operator allows (package policy).
//
// Read first: [Problems], then [Encryption].
package componentfile
