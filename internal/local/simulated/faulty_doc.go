// Package faulty injects faults into the machines and networks of a backend. It wraps a backend, so that neither the
// backend nor the decisions need to know about faults, and derives the faults from the annotations of an object: a
// machine that never starts, a Node that is not ready, a cluster that is never provisioned. Only a backend that is
// wrapped by [WrapFaulty] has faults.
package simulated
