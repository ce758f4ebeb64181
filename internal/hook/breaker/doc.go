// Package breaker is a circuit breaker: it stops calls to a server that does not answer.
//
//	           5 failures in a row                    the pause is over
//	Closed ───────────────────────────► Open ───────────────────────────► one probe
//	   ▲                                  ▲                                │     │
//	   │            answered              └───────── failed: a longer pause┘     │
//	   └─────────────────────────────────────────────────────────────────────────┘
//
// Does: says whether a call may be made now, and learns from what became of it. Pauses double from the first to the last,
// each changed at random by up to a fifth, so that many do not retry at the same moment.
//
// Owns: the state of one circuit, in memory.
//
// Never: calls anybody, sleeps, or reads a clock: the time is passed in.
//
// Read first: [Breaker.Enter].
package breaker
