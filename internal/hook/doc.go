// Package hook is the client for Runtime Extensions. It discovers the handlers of extensions ([Extensions]), calls one
// or all handlers of a hook ([Client]), converts between versions of a hook, caches responses that request a later call
// until a refresh is requested ([RefreshAnnotation]), records metrics, and lists the extensions that the removal of a
// hook would break ([Broken]). Connections, circuit breakers and cached responses are in memory only; the
// ExtensionConfig controller reports them in the API. A failing extension does not affect any other: each has its own
// limit on concurrent calls and its own circuit breakers. A call takes at most 30 s and is not retried when it fails;
// package wire documents when net/http sends a request a second time.
//
//	ExtensionConfig ──► Announce ──► Discover ──► Handler… ─┐
//	                                                        ▼
//	controller ──► Call, CallAll ──► namespaceSelector ─► cached?  ─► permit ─► circuits ─► wire ─► response ─► policy
//	                                                                  4 each                HTTPS   checked
//
// There are two levels of circuit breakers. The circuit of an extension opens when the extension cannot be reached;
// then none of its handlers is called. The circuit of a handler opens when the extension is reached but returns no
// usable response; its other handlers are still called. HTTP 404 from a handler also schedules the next discovery
// earlier, because the handlers may have changed.
//
// Result of a call, by the state of the extension and the failure policy of the handler (docs/decisions/0007):
//
//	                                                            Fail                    Ignore
//	response Success                                            the response            the response
//	response Success, retryAfterSeconds > 0                     the response: blocks    the response: blocks
//	response Failure                                            AnsweredFailure         AnsweredFailure
//	response of another kind or version than the hook's         WrongKind               WrongKind
//	response without or with an unknown status                  InvalidAnswer           InvalidAnswer
//	no response, no HTTP 200, too large, no JSON                reason of package wire  Success, no message
//	circuit open: it failed 5 times in a row                    CircuitOpen, at once    Success, no message, at once
//	4 calls in flight for 200 ms                                Busy: retry             Busy: retry
//	discovery failed, handlers of an earlier one (stale)        as above, by the call   as above, by the call
//	the handler serves a hook that is not in the catalog        UnknownHook             UnknownHook
//	its spec has been invalid since the manager started         the validation error    the validation error
//	never discovered, announced less than 15 s ago              NotReady: retry         NotReady: retry
//	never discovered, later, or discovery failed                NotDiscovered           NotDiscovered
//	namespace not selected                                      omitted by CallAll, NamespaceMismatch from Call
package hook
