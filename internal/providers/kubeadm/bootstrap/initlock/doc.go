// Package initlock is the lock that lets one Machine of a Cluster initialize its control plane.
//
// Does: describes the lock as a ConfigMap ([New]) and reads who holds it ([StateOf]). The lock is taken by creating the
// ConfigMap, which succeeds once; the Machine that is named in it keeps it over any crash.
//
//	taken ─► control plane initialized │ the Machine is gone ─► deleted
//
// Owns: the ConfigMap <cluster>-lock and its key lock-information, which other implementations of Cluster API know too.
//
// Never: talks to an API, or decides when the lock is taken or released.
//
// Read first: [State].
package initlock
