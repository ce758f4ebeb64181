// Package conversion converts objects of Cluster API's groups between their served versions ([Converter.Convert]).
// v1beta2 is the hub: every other version (a spoke) is converted to and from it. The conversion functions for fields
// come from the API module; this package handles the cases that the module leaves to its caller: references (which have
// a version in a spoke and a contract in the hub), moved fields, and zero values. Package webhook serves the
// conversions; `slipway convert` and `slipway plan` call them.
//
// No content is lost in a conversion hub → spoke → hub. The annotation cluster.x-k8s.io/conversion-data preserves the
// hub's content if a spoke has no fields for all of it. When the spoke is converted back, its changes are determined by
// comparing it with the spoke of the unchanged hub, and are applied to the hub (merge.go). Individual fields therefore
// need no code. Clients can write the annotation, and no schema validates its content; package webhook does that, using
// [Converter.Representable].
//
// A conversion spoke → hub → spoke normalizes some fields: the version in a reference is the one that currently serves
// the contract, its namespace is the object's, and uid and similar fields are dropped; durations are whole seconds;
// false and 0 are omitted if the hub distinguishes them from absent; and unused fields are dropped
// (progressDeadlineSeconds, useExperimentalRetryJoin, fieldPath of references).
package conversion
