// Package topology computes the desired objects of a Cluster with a ClusterClass, for the topology controller. The
// ClusterClass controller and the admission webhooks use its types and its rules for references and annotations, too.
// From a [Snapshot] (the Cluster, its class with the templates, and the existing objects) and the [Versions] that each
// part may have now, [NewDraft] and [Draft.DesiredState] compute every object of the topology, with name, labels,
// annotations and spec, in the order in which they are to be written. The package reads and writes no objects; package
// lifecycle decides when a version may change, and packages patch and variables apply the patches of the class.
//
// Each part of the class becomes these objects:
//
//	class: templates ──► patches ──► InfraCluster
//	       metadata                  template of the control plane's machines ──► ControlPlane ──► MachineHealthCheck
//	       health checks             bootstrap, infrastructure templates ──► MachineDeployment ──► MachineHealthCheck
//	Cluster: spec.topology           bootstrap config, infrastructure pool ──► MachinePool
//
// Objects that exist or are referenced retain their names. The random part of a new name is a digest of the Cluster
// name and the purpose of the object, for templates also of the spec. The same computation after a crash or restore
// therefore finds the objects that were created before, instead of creating them twice.
//
// A template whose spec changes is replaced by a template with a new name, and the references to it are updated.
// [Snapshot].Changed has the templates whose spec changed; only the API server can determine this, so the topology
// controller sends a dry run. If only metadata changes, the template retains its name and no Machine is replaced.
// Patches may write the names of templates into specs. Therefore [Draft.Rotate] assigns the new names, and the patches
// are applied again, so that they write the final names and objects that reference several templates change only once.
package topology
