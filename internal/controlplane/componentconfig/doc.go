// Package componentconfig validates and generates the configuration of the components of a hosted control
// plane that users can influence: the configuration files of kube-apiserver (audit policy, authentication,
// admission, encryption), the flags of all components, and the encryption keys. The components are processes
// of the host, therefore nothing that a tenant writes may name a file, a socket, a URL or a listen address of
// the host. Files are only encoded from the typed fields of a HostedControlPlane and never contain text from a
// tenant; they are validated with the validation code of Kubernetes ([Problems]). Flags that are not listed
// are rejected, and the values of listed flags are bounded ([FlagProblem], flaglists.go); flags that Slipway
// sets itself are not part of the lists. Writing the files is left to the caller, and package policy decides
// which issuers an operator allows. The admission of HostedControlPlanes and package processconfig validate with it.
// Package controlplane generates the files.
package componentconfig
