// Package providerset is the one list of what belongs to which provider of this build.
//
// Does: says for each provider which controllers, CRDs and flags are its own, and which kinds of other providers its
// controllers watch. Webhooks and storage migration follow from the CRDs, roles from the name: config/rbac has a file for
// each set. What runs a part of the providers (`slipway manager --providers`, `slipway up --without`, providers.disabled
// of the configuration file) selects sets of this list.
//
// Owns: the names of the providers. They are the values of the label cluster.x-k8s.io/provider, by which clusterctl knows
// a provider.
//
// Never: imports what it lists; tests of package manager compare the two.
//
// Read first: [All].
package providerset
