// Package tenants limits the use of a management cluster's API server and node by tenants. It limits
// concurrent lists and watches of each tenant, in addition to API Priority and Fairness ([Limits]). It also
// writes ValidatingAdmissionPolicies that prevent Pods and Services in unlabelled namespaces from using the
// management node, and reserve system priorities for providers ([RestrictNode]): slipway-management-node and
// slipway-system-priorities. Package internal/controlplane defines who is a tenant.
package tenants
