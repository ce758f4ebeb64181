// Package extensiontools implements `slipway extension`, the tools for authors and operators of Runtime Extensions.
// [RunSession] runs an extension on the developer's machine for a management cluster: it starts the process
// ([StartLocal]) and a proxy that displays and records the calls ([startProxy]), registers the proxy ([register]),
// waits for its discovery ([waitForDiscovery]), and stops and unregisters everything at the end; when files change
// ([FileChanges]), it restarts the process with the same registration. [Call] calls one handler as the manager does,
// with the manager's client (package hook), merged settings, the namespaceSelector, and the request converted to the
// version of the handler; [GetExample] provides an example request for every hook. [Replay] sends recorded requests to
// another build and compares the responses. [ReadCompatibility] compares the registered handlers with the hooks of this
// binary, before an upgrade and at each start of `slipway up`. The package owns the ExtensionConfigs with the
// annotation [RunAnnotation]; on others it only sets the annotation that requests a discovery ([RefreshDiscovery]), and
// deletes one by name ([DeleteRegistration]). The extension gets no credentials of a management cluster: KUBECONFIG is
// removed from its environment.
//
// In a session the calls have this path, so that the process can be replaced without a change of the registration. A
// registration is left behind only if the program is killed; the next session with the same name updates it:
//
//	management cluster ──TLS──▶ proxy (displays, records) ──TLS──▶ the developer's process
package extensiontools
