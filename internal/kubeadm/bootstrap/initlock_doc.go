// Package initlock implements the lock that allows a single Machine of a Cluster to initialize the control plane. The
// lock is the ConfigMap <cluster>-lock, with the key lock-information as in other implementations of Cluster API.
// Taking the lock means creating the ConfigMap, which only succeeds once; the Machine named in it holds the lock
// across crashes. The package creates the ConfigMap's content ([NewInitLock]) and reads its holder ([InitLockStateOf]); the
// controller accesses the API.
//
//	taken ─► control plane initialized │ Machine deleted ─► ConfigMap deleted
package bootstrap
