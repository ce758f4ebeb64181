// Package encryptionkeys rotates the keys that encrypt the etcd data of a hosted control plane, while the cluster is
// running. It reads the progress from Secret <cluster>-encryption and the status of the HostedControlPlane, computes
// the next step ([decide], without side effects), executes it, and waits until the control plane has followed
// ([Rotator.Run]). `slipway rotate encryption` uses this package. The command can be killed at any time, and continues
// when it is run again:
//
//	Secret has            control plane runs with   next step
//	old                   old                       add new keys before the old ones
//	new, former old       old                       wait for the restart
//	new, former old       new, old                  rewrite all objects ([RewriteAll]), then remove the old keys
//	new, rewritten        new, old                  wait for the restart
//	new, rewritten        new                       done
//
// The Secret is the only record of the progress. Independently of the Secret, the control plane itself (package
// processconfig) never starts without keys that its data may require. Keys are never displayed, and not removed before
// everything has been rewritten with others.
package encryptionkeys
