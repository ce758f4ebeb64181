// Package create creates and deletes clusters. It validates the name ([CheckName]), selects an unused subnet
// ([SelectSubnet]), with a lock for concurrent commands on the same host ([Lock]), creates a missing class
// ([CreateMissing]), applies a manifest after a dry run of all its objects, so that an error in the last one does not
// leave the others behind ([Apply]), and deletes a Cluster ([Delete]). The field manager is "slipway-cli". Package
// progress waits for a cluster. `slipway create cluster` and `slipway delete cluster` use this package.
package create
