// Package backend defines the interface between the HostedControlPlane controller and the programs that run
// control planes: the operations ([ControlPlanes], [Endpoints]), their values, and the static properties of a
// backend on which decisions depend ([Capabilities]). Every operation is idempotent. A backend consists of a
// subpackage, a field of spec.backend, and an entry in the [Set]. The package also serializes restarts for
// patch versions ([Turns]). It does not depend on conditions, Secrets, or the way in which a control plane
// runs. Start at [ControlPlanes] and terms.go.
package backend
