// Package tenants bounds what tenants of a management cluster have of its API server and of its node.
//
// Does: limits the lists and watches of one tenant, before priority and fairness ([Limits]); writes the policies that keep Pods and Services of
// namespaces without a label off the management node, and system priorities to providers ([RestrictNode]).
//
// Owns: ValidatingAdmissionPolicies slipway-management-node and slipway-system-priorities, and their bindings.
//
// Never: decides who is a tenant; internal/plane does.
//
// Read first: [Limits], [RestrictNode].
package tenants
