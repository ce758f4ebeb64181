// Package clone makes bootstrap configs and infrastructure machines out of their templates.
//
// Does: builds the object that a template describes, for one Machine: spec and metadata of the template, metadata of
// the Machine's owner on top, where it came from as annotations (MS-05), owner and cluster label, all of it in the one
// object that creates it. Keeps the metadata of clones what their owner says, without touching what is the provider's
// or the template's ([Metadata]).
//
// Owns: of clones: the annotations cluster.x-k8s.io/cloned-from-name and cloned-from-groupkind.
//
// Never: decides when to clone, or gives a clone to its Machine.
//
// Read first: [Request], then [Metadata].
package clone
