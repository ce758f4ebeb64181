// Package backend defines the interface between the HostedControlPlane controller and the programs that run
// control planes: the operations ([ControlPlanes], [Endpoints]), their values, and the static properties of a
// backend on which decisions depend ([Capabilities]). Every operation is idempotent. It also serializes
// restarts for another patch version ([Turns]). A backend consists of a sibling package that implements
// [ControlPlanes], a field of spec.backend, and an entry in the [Set] of the manager. The package does not
// depend on conditions, Secrets, or the way in which a control plane runs.
package backend
