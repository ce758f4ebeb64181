// Package hook calls Runtime Extensions for the controllers. [Extensions] is the registry: it discovers the handlers of
// each ExtensionConfig and calls them (interface [Client]) in the version of the hook that the handler serves.
// [LifecycleCaller] calls the lifecycle hooks that package lifecycle requests. Connections, circuit breakers and cached
// responses are in memory only; the ExtensionConfig controller reports their state in the API. A failing extension does
// not affect any other: each has its own limit on concurrent calls and its own circuit breakers. A call takes at most
// 30 s and is not retried when it fails; [Conn.Post] documents when net/http sends a request a second time. A response
// that requests a later call is cached until then, or until a refresh is requested with [RefreshAnnotation].
//
// A call passes these steps (targets.go, call.go, circuit.go, conn.go, response.go):
//
//	ExtensionConfig ──► Announce ──► Discover ──► Handler… ─┐
//	                                                        ▼
//	controller ──► Call, CallAll ──► namespaceSelector ─► cached? ─► permit ─► circuits ─► HTTPS ─► response ─► policy
//	                                                                 4 each                         checked
//
// The result depends on the state of the extension and on the failure policy of the handler (docs/decisions/0007). For
// a call with [Invocation].Strict, the column Fail applies to every handler:
//
//	                                                            Fail                    Ignore
//	response Success                                            the response            the response
//	response Success, retryAfterSeconds > 0                     the response: blocks    the response: blocks
//	response Failure                                            AnsweredFailure         AnsweredFailure
//	response of another kind or version than the hook's         WrongKind               WrongKind
//	response without status, or with an invalid field           InvalidAnswer           InvalidAnswer
//	no response, no HTTP 200, too large                         reason in classify.go   Success, no message
//	no JSON                                                     AnswerNotJSON           Success, no message
//	circuit open: it failed 5 times in a row                    CircuitOpen, at once    Success, no message, at once
//	4 calls in flight for 200 ms                                Busy: retry             Busy: retry
//	discovery failed, handlers of an earlier one (stale)        by the result of the call
//	the handler serves a hook that is not in the catalog        UnknownHook             UnknownHook
//	its spec has been invalid since the manager started         the validation error    the validation error
//	not primed: the ExtensionConfigs have not been read         NotReady: retry         NotReady: retry
//	never discovered, announced less than 15 s ago              NotReady: retry         NotReady: retry
//	never discovered, later, or discovery failed                NotDiscovered           NotDiscovered
//	namespace not selected                                      omitted by CallAll, NamespaceMismatch from Call
//	Call of a handler that no extension has                     NotRegistered           NotRegistered
//	Call of a handler of another hook                           HookMismatch            HookMismatch
//
// There are two levels of circuit breakers. The circuit of an extension opens when the extension cannot be reached;
// then none of its handlers is called. The circuit of a handler opens when the extension is reached but returns no
// usable response; its other handlers are still called. HTTP 404 from a handler also schedules the next discovery
// earlier, because the handlers may have changed. Delays double from 1 s to 1 min, with a random variation of up to a
// fifth, so that many managers do not retry at the same moment:
//
//	           5 failures in a row                    the delay has passed
//	Closed ───────────────────────────► Open ───────────────────────────► one probe
//	   ▲                                  ▲                                │     │
//	   │            success               └───────── failed: a longer delay┘     │
//	   └─────────────────────────────────────────────────────────────────────────┘
package hook
