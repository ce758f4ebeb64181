// Package progress waits for a cluster and reports the progress. It derives steps from a snapshot of the cluster, each
// with its state and the condition that ends it ([creation], [Deletion]; both without side effects), follows the
// cluster until all steps are done ([Run]), and displays the steps as live lines on a terminal ([Live]) or as one line
// per change elsewhere ([Plain]). These waits never write to the API, so interrupting one changes nothing in the
// cluster. [Operation] follows work that changes a cluster in phases, such as a rotation or a restore. The commands
// that create, upgrade, delete or wait for a cluster use this package, and installations of providers display their
// steps with it (package clusterctl/install).
package progress
