// Package rbac contains the RBAC rules: the permissions of each provider's controllers, of the process in which they
// run, and of the core for the kinds of the built-in providers, and roles for users. [Objects] returns the manifests in
// this directory, one file for each provider, with bindings to the identities that run them ([Rights]) and with
// admission policies that limit permissions which RBAC can grant only for all objects of a kind. The objects are the
// ClusterRoles, Roles and bindings named slipway-*, and the namespace slipway-system. `slipway up` applies them,
// `slipway manager --print-roles` prints them, and a release contains them.
package rbac
