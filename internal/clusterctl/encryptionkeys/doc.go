// Package encryptionkeys replaces the keys with which a hosted control plane encrypts what is in its etcd, while the cluster runs.
//
// Does: reads from Secret <cluster>-encryption and the status of the HostedControlPlane how far a rotation is, says what comes next
// ([Decide], pure), does it, and waits until the control plane has followed ([Order.Run]). It may be killed at any point, and
// continues when it is run again:
//
//	Secret has            control plane runs with   what comes next
//	old                   old                       put new keys before the old ones
//	new, former old       old                       wait: it restarts
//	new, former old       new, old                  write everything once more ([Rewrite]), then leave the new ones alone
//	new, rewritten        new, old                  wait: it restarts
//	new, rewritten        new                       done
//
// The Secret is the only place that says how far it is. That a control plane never starts without keys that its data may need is
// held by the control plane itself (package plane/workload), whatever the Secret says.
//
// Never: shows a key; removes one before everything was written with another.
//
// Read first: [Decide], then [Rewrite].
package encryptionkeys
