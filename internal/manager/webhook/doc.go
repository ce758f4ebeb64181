// Package webhook serves admission and conversion to the API server, and tells the API server where.
//
// Does: handlers over package admission and package conversion (Register); the certificate that they are served with,
// made and renewed here and kept in a Secret, so that nothing else need be installed (Certificates); the webhook
// configurations and, through package crds, the CRDs that name the address and the authority (Install).
//
// A call costs the API server a round trip, so the configurations ask for few: none for status, none for deletion but that of
// ClusterClasses, and for an update only when a field has changed that a rule or a default depends on (kinds.go says which).
// A change in an older version is always one: the annotation of its conversion is judged by the schema that the API server does not
// apply to it (restored.go).
// What the rules of managed topologies need of other objects is read past the cache (facts.go). Requests are bounded, and the API server
// of slipway up is the only client there (limits.go).
//
// Owns: Secret slipway-webhook-cert in the manager's namespace; the webhook configurations slipway-defaulting-PROVIDER and
// slipway-validation-PROVIDER of the providers that run; spec.conversion of their CRDs.
//
// Never: decides what is valid, or how versions differ.
//
// Read first: kinds.go, then install.go.
package webhook
