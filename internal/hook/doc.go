// Package hook calls Runtime Extensions, and keeps one that is broken from hurting anybody else.
//
//	ExtensionConfig ──► Discover ──► Handler… ─┐
//	                                           ▼
//	controller ──► Call, CallAll ──► namespaceSelector ─► kept answer? ─► slot ─► circuit ─► wire ─► answer ─► policy
//	                                                       RT-14          4 each  breaker    HTTPS   checked   RT-11
//
// Does: keeps what is known of every extension ([Extensions]), asks them for their handlers (RT-06, RT-07), calls one
// handler or all of a hook (RT-10 to RT-13), translates between versions of a hook (RT-16), keeps answers that ask for
// patience (RT-14), measures (RT-18), and says which extensions the removal of a hook would break ([Broken], RT-25).
//
// Owns: the connections to extensions, the state of their circuits, and the answers kept; all in memory.
//
// Never: writes to the API; the controller of ExtensionConfigs reports what is known here. A call never outlasts 30 s,
// and is not repeated when it failed; package wire says when its request is sent a second time.
//
// What a caller gets, by the state of an extension and by the failure policy of the handler (docs/decisions/0007):
//
//	                                                            Fail                    Ignore
//	answered Success                                            the answer              the answer
//	answered Success, retryAfterSeconds > 0                     the answer: it blocks   the answer: it blocks
//	answered Failure                                            AnsweredFailure         AnsweredFailure
//	answered with another kind or version than the hook's        WrongKind               WrongKind
//	answered without status, or another than these              InvalidAnswer           InvalidAnswer
//	no answer, no HTTP 200, too large, no JSON                  the reason of wire      Success, no message
//	circuit open: it failed 5 times in a row                    CircuitOpen, at once    Success, no message, at once
//	4 calls in flight for 200 ms                                Busy: ask again         Busy: ask again
//	discovery failed, handlers known from before (stale)        as above, by the call   as above, by the call
//	never discovered, announced less than 15 s ago              NotReady: ask again     NotReady: ask again
//	never discovered, later                                     it has no handlers      it has no handlers
//	namespace not selected                                      left out by CallAll, NamespaceMismatch by Call
//
// Read first: [Client], [Extensions], then call.go.
package hook
