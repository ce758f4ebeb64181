// Package crdschema validates objects against the schema of one version of a CRD, as the API server does, for
// `slipway plan` and webhooks. It prunes unknown fields and sets defaults ([Schema.Complete]), validates the structure
// of an object (types, bounds, patterns, embedded objects, lists that are sets or maps; [Schema.Shape]), and evaluates
// the CEL rules within the cost budget that the API server has for a request ([Schema.Rules]). On update, unchanged
// invalid values are accepted (ratcheting). A schema is compiled once, on first use.
//
//	old, new ─► Complete ─► Shape ─► Rules ─► violations
package crdschema
