// Package manager runs the controllers and webhooks of the providers that are to run, as one process.
//
// Does: holds the scheme, the feature gates, how the controllers of each provider are added ([Run]) and with which identity,
// the cache and what of it is kept in memory, and what a management cluster must have before they start ([Install]: CRDs, webhook
// configurations, RBAC). `slipway up` and `slipway manager` call the same two functions.
//
// Owns: namespace slipway-system, and through its parts the CRDs, webhook configurations and roles.
//
// Never: knows flags; package internal/cli/manager does. Says what belongs to which provider: package providerset does.
//
// Read first: [Config], then controllers.go.
package manager
