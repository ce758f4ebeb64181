// Package authority is the certificate authorities of a cluster and its administrator's kubeconfig, as Secrets.
//
// Does: says which Secrets a control plane needs ([Required]), reads them ([Read]), judges what is there
// ([Judge]: what has to be created, what only a person can bring, what cannot be used), makes the content of new
// ones ([Generate]), and makes and renews the kubeconfig ([Kubeconfig]). Secrets that a user created before the
// cluster are used as they are; a CA without its key serves everything but signing.
//
//	Required(clusterConfiguration) ─► Read ─► Judge ─► create │ wait for a person │ complete
//	                                                                                  └─► Inspect ─► Outdated ─► Issue
//
// Owns: the names and keys of the Secrets <cluster>-{ca,etcd,proxy,sa,apiserver-etcd-client,kubeconfig}.
//
// Never: writes; the controller that owns the control plane does, and decides when an authority may still be
// created: one that is created after the first node exists is not the one that signed it.
//
// Read first: [Required], [Judge].
package authority
