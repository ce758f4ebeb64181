// Package topology computes what a Cluster of a ClusterClass consists of.
//
// Does: from a [Snapshot] (the Cluster, its class with the templates, and what exists) and the [Versions] that each part may
// have now, [Draft.Desire] computes every object of the topology: its name, labels, annotations and spec, in the order in which they
// are written.
//
//	class: templates ──► patches ──► InfraCluster
//	       metadata                  template of the control plane's machines ──► ControlPlane ──► MachineHealthCheck
//	       health checks             bootstrap and infrastructure templates ──► MachineDeployment ──► MachineHealthCheck
//	Cluster: spec.topology           bootstrap config, infrastructure pool ──► MachinePool
//
// # Names
//
// What exists, or is referred to, keeps its name. The random part of a new name is a digest of the name of the Cluster and of what the
// object is for, for a template also of its spec: whoever computes the same again, after a crash or a restore, finds what was created
// before, instead of creating it twice.
//
// # Rotation
//
// A template whose spec changes is replaced by one with a new name, and what refers to it with it ([Snapshot].Changed says which
// specs changed; only the API server knows, see package topology of the controllers). Where metadata changes alone, the template
// keeps its name, and no Machine is replaced. Patches may write the names of templates into specs: [Draft.Rotate] gives a changed
// template its next name, and the patches are applied once more, so that what they write is the name that the template has, and what
// refers to several templates changes once.
//
// Never: reads or writes objects, or decides when a version may change (package lifecycle).
//
// Read first: [Snapshot], [NewDraft], [Draft.Patch], [Draft.Rotate], [Draft.Desire].
package topology
