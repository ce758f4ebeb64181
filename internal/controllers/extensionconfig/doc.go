// Package extensionconfig is the ExtensionConfig controller: it makes Runtime Extensions known, and says how they do.
//
// Does: writes the authority of a Secret into spec.clientConfig.caBundle where the annotation asks for it, again whenever
// the Secret changes; asks the extension for its handlers when the spec changed, from time to time, with growing
// pauses while that fails, and at once where an annotation requests it; reports handlers, circuits and deprecated hooks; forgets what is deleted. In read-only mode it
// takes the handlers from the status that another manager wrote for the current spec.
//
//	Secret ─ ca.crt ─► caBundle ─► Discover ─► handlers ─► status
//	                                  │
//	          calls, circuit ◄── hook.Extensions ──► conditions, events
//
// Owns: of ExtensionConfigs: spec.clientConfig.caBundle where the annotation is set, the end of the annotation that requests a
// discovery, and the status.
//
// Never: calls a hook but discovery, stops or delays the manager because of an extension, or repeats what a Secret
// or the settings hold.
//
// Read first: [Snapshot], [Decide], then conditions.go; what calls do is in package hook.
package extensionconfig
