// Package webhook serves admission and conversion webhooks and configures the API server to call them. [Register] adds
// the handlers, which use package admission and package conversion. [Certificates] creates and renews the serving
// certificate in the Secret slipway-webhook-cert, so that no certificate manager is needed. [Install] writes the
// webhook configurations slipway-defaulting-PROVIDER and slipway-validation-PROVIDER of the enabled providers and,
// through package crds, the CRDs with spec.conversion. The manager adds the webhooks at its start. Package release
// writes the same configurations into manifests ([Objects]). `slipway plan` evaluates the rules without a server
// ([InProcessAdmission]).
//
// Every call costs the API server a round trip, therefore the configurations match as few requests as
// possible: no status updates, no deletions except of ClusterClasses, and only those updates that change a
// field on which a rule or a default depends (kinds.go). An update in an older version is always matched,
// because the API server does not validate the content of the conversion annotation against the schema;
// conversiondata.go does. Objects that the rules of managed topologies depend on are read from the API server,
// not from the cache (relatedobjects.go). Requests are limited in size and number, and in `slipway up` only the API
// server may call (limits.go). Start at kinds.go and install.go.
package webhook
