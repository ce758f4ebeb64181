// Package manager runs every controller and webhook as one process.
//
// Does: holds the scheme, the feature gates, the one list of controllers ([Run] adds them all), the cache and what of
// it is kept in memory, and what a management cluster must have before they start ([Install]: CRDs, webhook
// configurations, RBAC). `slipway up` and `slipway manager` call the same two functions.
//
// Owns: namespace slipway-system, and through its parts the CRDs, webhook configurations and roles.
//
// Never: knows flags; package internal/cli/manager does.
//
// Read first: [Config], then controllers.go.
package manager
