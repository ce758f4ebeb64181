// Package clone creates bootstrap configs and infrastructure machines from their templates and maintains their
// metadata. [New] builds the clone for one Machine in its final form, so that a single write creates it: spec and
// metadata of the template, metadata of the Machine's owner, annotations with the origin, owner reference and cluster
// label. [Metadata] updates the metadata that the owner applies and leaves metadata of the provider and the template
// unchanged. [Update] makes a clone match a newer template when its Machine is updated in place. The package also reads
// templates ([Template]) and the clones of an owner's Machines ([Clones]), finds clones without a Machine, and
// determines the template from which a clone was created ([Clones.OriginOf]). It owns the annotations
// cluster.x-k8s.io/cloned-from-name and cloned-from-groupkind of clones, and the metadata that their owner applies. It
// does not decide when to create a clone, and it does not make a Machine the owner of its clones; the Machine
// controller does. To change the package, start with [Options] and [Metadata], then read [Clones]. Package machines and
// the controllers of MachineSets, MachineDeployments and KubeadmControlPlanes use the package, and the topology
// controller uses [Usage].
package clone
