// Package template is the cluster templates of a release.
//
// Does: makes a template of each flavor from one of the examples: what a cluster has of its own (name, namespace, version, number of
// nodes, network) becomes a variable.
//
// Never: has a manifest of its own: an example that changes changes its template.
//
// Read first: [Flavors].
package template
