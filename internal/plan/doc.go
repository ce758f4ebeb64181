// Package plan computes the effects of a change to a management cluster before it is applied (`slipway plan`). It
// copies the objects of a management cluster into memory ([ReadCluster], or [ReadFolder] for files), runs the
// controllers until the copy settles, applies the change as `kubectl apply` would, with defaulting, validation and
// admission, and runs the same controllers until nothing changes any more ([Run]). The result is a [Plan]: the objects
// that are created, updated field by field, and deleted, the Machines that are replaced and in which steps, and the
// objects that are still waiting at the end. The controllers make all decisions; nothing is predicted. The package
// never reads the content of a cluster's Secrets, writes nothing to the management cluster, and calls Runtime
// Extensions only if [Options].Registry is set. See docs/decisions/0012-whatif.md.
//
//	objects ─► memory ─► controllers, simulated providers ─► settled ─► the change ─► settled ─► the difference
package plan
