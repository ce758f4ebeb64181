// Package faulty makes something go wrong with the machines and networks of a backend, on purpose.
//
// Does: puts itself around a backend, so that neither the backend nor the decisions know of faults, and makes of the
// annotations of an object what is to go wrong with it: a machine that never starts, a Node that is not ready, a cluster
// that is never provisioned.
//
// Never: chooses a backend: only those that ask for it have faults.
//
// Read first: [Around].
package faulty
