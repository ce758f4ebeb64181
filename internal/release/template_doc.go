// Package template generates the cluster templates of a release. It derives the template of each flavor ([Flavors])
// from one of the examples: the properties of a single cluster (name, namespace, version, number of nodes, network)
// become variables.
package release
