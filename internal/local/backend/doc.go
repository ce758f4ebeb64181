// Package backend defines the interface between the Local controllers and the implementations that run nodes. A backend
// implements [Networks], [Machines] and, if it has them, [Scripts], [Balancers], [EtcdRecovery], [Watcher] and
// [Sweeper]; every operation is idempotent, because it establishes a state instead of performing a step. Decisions
// distinguish backends only by their [Capabilities], so a new backend needs a package that implements the interfaces, a
// member of spec.backend, and an entry in the provider's [Set], and no change of a controller.
//
// The package also contains the code that all backends share: the capacity of nodes that do not exist yet
// ([CapacityCalculator]); the names, labels and provider IDs of host resources, by which a resource is assigned to its
// object ([Ref]); the choice of an address range ([ChooseRange]); the [Broadcaster], which distributes the events of a
// backend to the work queues of the controllers; and the concurrent removal of many host resources ([Remove]).
//
// Two features work with any backend that can run programs in its machines. [WrapPreloading] loads the [ImageArchives]
// of a cluster into a machine before its bootstrap script runs, so that the images are available to it; only the node's
// container runtime reads the content of an archive. [EtcdMembers] rebuilds the etcd member on a machine with the
// programs of package recovery; the control plane controller decides when that happens.
package backend
