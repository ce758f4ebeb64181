// Package simulated is the backend of the HostedControlPlane controller that runs simulated control planes
// (spec.backend.simulated): API servers within this program, from package internal/simulated. It creates no CAs and no
// Nodes; the machines of package internal/local/simulated create the Nodes. [WithFaults] adds faults for tests to the
// backend: annotations of the HostedControlPlane make its API server unreachable, slow, or return errors. The faults are
// a wrapper, so that neither the backend nor the controller contains fault handling.
package simulated
