// Package manager runs the controllers and webhooks of the enabled providers in one process. It defines the scheme, the
// feature gates, the cache, and the controllers of each provider with their identities, and installs CRDs and webhook
// configurations in the management cluster ([Run]). `slipway up` and `slipway manager` call Run. `slipway up` calls
// [Install] before, which creates the namespace slipway-system and RBAC; for `slipway manager`, the manifests of a
// release contain them. Command-line flags are in package internal/cli/manager, and package providerset assigns kinds
// and controllers to providers. The package also stores what the last reconciliation of every object did, what it waits
// for and why ([PlanStore]), and serves it to users who may read the object ([PlanHandler]), for `slipway explain` and
// `slipway ui`. Kinds that are read both with Go types and as unstructured objects are watched once (relay.go). Do not
// relay kinds whose objects are copied into other objects, such as templates: fields that the Go types do not know are
// lost. Start at [Config] and controllers.go.
package manager
