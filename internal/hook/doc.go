// Package hook calls Runtime Extensions, and keeps one that is broken from hurting any other.
//
//	ExtensionConfig ──► Announce ──► Discover ──► Handler… ─┐
//	                                                        ▼
//	controller ──► Call, CallAll ──► namespaceSelector ─► kept answer? ─► slot ─► circuits ─► wire ─► answer ─► policy
//	                                                                      4 each             HTTPS   checked
//
// Does: keeps what is known of every extension ([Extensions]), discovers their handlers, calls one handler or all of a
// hook, translates between versions of a hook, keeps answers that ask for a later call, until an annotation requests that the
// extension is discovered once more ([RefreshAnnotation]), measures, and says which extensions the removal of a hook would
// break ([Broken]).
//
// Owns: the connections to extensions, the state of their circuits, and the answers kept; all in memory.
//
// Never: writes to the API; the controller of ExtensionConfigs reports what is known here. A call never outlasts 30 s,
// and is not repeated when it failed; package wire says when its request is sent a second time.
//
// There are two sorts of circuits. That of an extension opens when it cannot be reached; then none of its handlers is
// called. That of a handler opens when the extension is reached and gives no answer that can be used; the other handlers
// are called as before. HTTP 404 from a handler brings the next discovery forward as well: the handlers may have changed.
//
// What a caller gets, by the state of an extension and by the failure policy of the handler (docs/decisions/0007):
//
//	                                                            Fail                    Ignore
//	answered Success                                            the answer              the answer
//	answered Success, retryAfterSeconds > 0                     the answer: it blocks   the answer: it blocks
//	answered Failure                                            AnsweredFailure         AnsweredFailure
//	answered with another kind or version than the hook's       WrongKind               WrongKind
//	answered without status, or another than these              InvalidAnswer           InvalidAnswer
//	no answer, no HTTP 200, too large, no JSON                  the reason of wire      Success, no message
//	circuit open: it failed 5 times in a row                    CircuitOpen, at once    Success, no message, at once
//	4 calls in flight for 200 ms                                Busy: ask again         Busy: ask again
//	discovery failed, handlers known from before (stale)        as above, by the call   as above, by the call
//	the handler serves a hook that is not in the catalog        UnknownHook             UnknownHook
//	its spec cannot be used, and never could in this life       what is wrong with it   what is wrong with it
//	never discovered, announced less than 15 s ago              NotReady: ask again     NotReady: ask again
//	never discovered, later, or discovery failed                NotDiscovered           NotDiscovered
//	namespace not selected                                      left out by CallAll, NamespaceMismatch by Call
//
// Read first: [Client], [Extensions], then call.go.
package hook
