// Package variables is the variables of managed topologies: what a ClusterClass defines, and the values that a Cluster gives.
//
// Does: validates definitions as a CustomResourceDefinition's schema is validated, by the libraries of the API server
// (ValidateDefinitions); compiles them once for a class (Schemas, Definitions); defaults and validates the values of a topology,
// those for all objects and the overrides of the control plane, of deployments and of pools; holds values by name and finds parts
// of them by paths such as a.b[0] (Values, Path); makes the builtin variable.
//
// Never: reads or writes an object, or says which template a value goes to: that is package patch.
//
// Read first: values.go, then [Definitions].
package variables
