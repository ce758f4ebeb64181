// Package statuslimits says what the API accepts as the status of an object.
//
// Does: compiles the schemas of CRDs once, when the manager starts; checks a status against them with every write, and leaves
// out the values that the API would refuse. Much of a status comes from a provider or a workload cluster, which may report
// anything; one value that is refused would keep all others from being written.
//
// Never: changes the status that it is given, or knows a rule that the schema does not have.
//
// Read first: [Limits.Bound].
package statuslimits
