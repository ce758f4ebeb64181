// Package breaker implements a circuit breaker, which stops calls to a server that does not respond. A breaker decides
// whether a call may be made now, based on the outcome of previous calls. Its delays double from the first to the last,
// with a random variation of up to a fifth, so that many clients do not retry at the same moment. The state is in
// memory only, and the caller passes the time.
//
//	           5 failures in a row                    the delay has passed
//	Closed ───────────────────────────► Open ───────────────────────────► one probe
//	   ▲                                  ▲                                │     │
//	   │            success               └───────── failed: a longer delay┘     │
//	   └─────────────────────────────────────────────────────────────────────────┘
package hook
