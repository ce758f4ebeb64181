// Package crdschema judges objects by the schema of one version of a CRD, as the API server does.
//
// Does: drops what the schema does not know and adds its defaults ([Schema.Complete]); checks the shape of an object: types,
// bounds, patterns, embedded objects, lists that are sets or maps ([Schema.Shape]); checks the CEL rules, within the budget that
// the API server gives a request ([Schema.Rules]). Where there was an object before, what was wrong in it and is as it was is
// accepted. A schema is compiled once, at its first use.
//
//	old, new ─► Complete ─► Shape ─► Rules ─► violations
//
// Never: reads or writes an API, or knows what an object means.
//
// Read first: [Schema].
package crdschema
