// Package simulated is the backend of the HostedControlPlane controller that runs simulated control planes
// (spec.backend.simulated): API servers within this program, from package internal/simulated. It creates no CAs and no
// Nodes; the machines of package internal/local/simulated create the Nodes. The backend of [New] supports faults for
// tests: annotations of the HostedControlPlane make its API server unreachable, slow, or return errors. The faults are
// a wrapper around the backend ([WithFaults]), so that neither the backend nor the controller contains fault handling.
// Package manager adds the backend.
package simulated
