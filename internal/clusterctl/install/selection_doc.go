// Package selection loads the providers to install. A [SelectionLoader] opens the repository of a provider, selects the version,
// and reads its contract and components; [ReadCluster] determines the providers of a management cluster. The package
// only reads; package installation checks the compatibility of providers.
package install
