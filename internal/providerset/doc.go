// Package providerset lists the providers of this build with their controllers, CRDs, flags, and the kinds of other
// providers that their controllers watch. Webhooks and storage version migration follow from the CRDs, and roles from
// the name: config/rbac has one file for each set. `slipway manager --providers`, `slipway up --without` and
// providers.disabled in the configuration file select sets of this list. The names are the values of the label
// cluster.x-k8s.io/provider, by which clusterctl identifies a provider. The package does not import the controllers
// that it lists; tests of package manager compare the two.
package providerset
