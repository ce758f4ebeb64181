// Package variables implements the variables of managed topologies. It validates the definitions of a ClusterClass in
// the same way as the schema of a CustomResourceDefinition, with the libraries of the API server
// ([ValidateDefinitions]), and compiles them once for each class ([Schemas], [Definitions]). It defaults and validates
// the values in a topology: values for all objects, and overrides for the control plane, MachineDeployments and
// MachinePools. [Values] holds values by name, and [Path] finds a part of a value by a path such as a.b[0]. The package
// also builds the builtin variable. Webhooks and the topology controller call it; package patch uses the values.
package variables
