// Package providerrelease writes releases of fictional providers, for tests of their installation. [Write] writes
// folders that serve as repositories, and the clusterctl configuration that references them. Each provider has a
// Namespace, a CRD with an object of its kind (the core provider also the CRD of Clusters), an Issuer and a
// Certificate, a Secret with a variable, a Deployment whose image does not exist, and a webhook configuration. The
// package runs no process.
package providerrelease
