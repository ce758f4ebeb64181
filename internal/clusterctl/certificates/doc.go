// Package certificates satisfies the cert-manager objects of providers, with or without cert-manager. `slipway upgrade
// apply` upgrades cert-manager itself by the plan of [PlanUpgrade]. [Steps] returns the steps that a management cluster
// needs first, by the mode (`slipway init --cert-manager`):
//
//	builtin    Slipway's minimal CRDs for Issuer, ClusterIssuer and Certificate; [Reconcile] issues the certificates
//	install    cert-manager itself, as configured in the configuration file
//	external   none
//	automatic  builtin if the CRDs are Slipway's; external if the configuration file declares it, or if another
//	           cert-manager exists, or if the cert-manager of init works; else install
//
// [Reconcile] issues and renews the Secrets of Certificates from selfSigned and ca issuers, and injects the CA into
// webhook configurations and CRDs whose annotation cert-manager.io/inject-ca-from names a Certificate. A [Controller]
// installs the CRDs and reconciles while `slipway up` runs. The field manager is slipway-certificates. Objects
// of an installed cert-manager are never modified, and a Secret that was not issued for the Certificate is never
// overwritten.
package certificates
