// Package backend is what the HostedControlPlane controller asks of whatever runs control planes.
//
// Does: defines the verbs ([ControlPlanes], [Endpoints]), the values they exchange, and the facts by which decisions know a
// backend ([Terms]). Every verb may be repeated: it brings about a state instead of performing a step. A backend is a
// folder below this one, a member of spec.backend, and an entry in the [Set]. Remembers whose turn it is to restart ([Turns]).
//
// Never: knows conditions, Secrets, or how a control plane is run.
//
// Read first: [ControlPlanes], then terms.go.
package backend
