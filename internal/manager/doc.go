// Package manager runs the controllers and webhooks of the enabled providers in one process. It defines the
// scheme, the feature gates, the cache, and the controllers of each provider with their identities ([Run]),
// and it installs the prerequisites in the management cluster ([Install]): the namespace slipway-system,
// CRDs, webhook configurations and RBAC. `slipway up` and `slipway manager` call the same two functions.
// Command-line flags are in package internal/cli/manager, and package providerset assigns kinds and
// controllers to providers. The package also stores what the last reconciliation of every object did, what it
// waits for and why ([PlanStore]), and serves it to users who may read the object ([PlanHandler]), for `slipway
// explain`. Start at [Config] and controllers.go.
package manager
