// Package versions stores the Kubernetes releases that this host can run in addition to the one included in this build,
// for hosted control planes of other versions. A [Store] adds releases, compiled from Go modules by a [Compiler] or
// imported from an archive, lists, exports and removes them, and returns the program of a release after checking that
// it is unchanged. Each release is a directory with a [manifest] and a program in the directory kubernetes of the data
// directory. It is created atomically and not changed afterwards. `slipway versions` changes the store. The manager,
// commands and the processes of hosted control planes read it.
package versions
