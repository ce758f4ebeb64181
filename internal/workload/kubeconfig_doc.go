// Package kubeconfig parses untrusted kubeconfigs ([Parse]), such as those in Secrets, which any user who can write
// Secrets in a namespace can change. It returns a client configuration that consists only of embedded credentials and
// an https address. It rejects everything that could access other resources: commands and plugins, files, plain HTTP,
// unverified servers, impersonation, and proxies and addresses that the operator's policy does not allow. The package
// is not meant for kubeconfigs of command-line users, who may run any command anyway.
package workload
