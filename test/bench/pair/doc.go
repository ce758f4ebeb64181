// Package pair runs a management cluster and the manager as two processes, so that each can be measured, and killed,
// apart from the other.
//
// Does: starts both, waits until the manager is ready, kills and starts the manager again, and says what the two use.
//
// Owns: the processes and their temporary folder; Stop ends both and removes it.
//
// Never: knows what is measured.
//
// Read first: [Start].
package pair
