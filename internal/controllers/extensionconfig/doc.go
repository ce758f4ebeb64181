// Package extensionconfig is the ExtensionConfig controller, which registers Runtime Extensions and reports their
// state. It writes the certificate authority of a Secret to spec.clientConfig.caBundle if the annotation requests it,
// again whenever the Secret changes. It discovers the handlers of the extension when the spec changes, periodically,
// with backoff after failures, and at once if an annotation requests it. It reports handlers, circuit breakers and
// deprecated hooks, and unregisters deleted extensions. In read-only mode it uses the handlers in the status that
// another manager wrote for the current spec. The controller owns the status of ExtensionConfigs,
// spec.clientConfig.caBundle if the annotation is set, and the removal of the annotation that requests a discovery.
// The discovery is the only hook that it calls; package hook implements the calls. An extension can never stop or
// delay the manager, and messages never contain the content of a Secret or of the settings. To change the controller,
// start with [snapshot] and [decide], then read conditions.go. Package manager starts the controller with [Add].
//
// The path from the Secret to the conditions:
//
//	Secret ─ ca.crt ─► caBundle ─► Discover ─► handlers ─► status
//	                                  │
//	          calls, circuit ◄── hook.Extensions ──► conditions, events
package extensionconfig
