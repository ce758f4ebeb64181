// Package clone creates bootstrap configs and infrastructure machines from their templates, and looks after them.
//
// Does: builds the object that a template describes, for one Machine: spec and metadata of the template, metadata of the
// Machine's owner on top, its origin as annotations, owner and cluster label, all of it in the one object that creates it
// ([New]). Keeps the metadata of clones what their owner says, without touching what is the provider's or the template's
// ([Metadata]). Reads templates ([Template]) and the clones of an owner's Machines ([Clones]), finds clones without a Machine,
// and tells from which template a clone was created ([OriginOf]).
//
// Owns: of clones: the annotations cluster.x-k8s.io/cloned-from-name and cloned-from-groupkind, and the metadata that their
// owner applies.
//
// Never: decides when to clone, or makes the Machine the owner of a clone; the Machine controller does.
//
// Read first: [Request], [Metadata], then [Clones].
package clone
