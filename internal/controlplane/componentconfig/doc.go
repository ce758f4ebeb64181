// Package componentfile generates the configuration files of a hosted kube-apiserver: audit policy,
// authentication, admission and encryption. It encodes them from the typed fields of a HostedControlPlane and
// validates them with the validation code of Kubernetes. The API server is a process of the host, therefore
// its files are only encoded from known fields and never contain text from a tenant. The package also defines
// the default audit policy and the format of encryption keys. Writing the files is left to the caller, and
// package policy decides which issuers an operator allows. Start at [Problems] and [Encryption].
package componentconfig
