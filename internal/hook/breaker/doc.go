// Package breaker stops asking somebody who does not answer.
//
//	           5 failures in a row                    the pause is over
//	Closed ───────────────────────────► Open ───────────────────────────► one trial
//	   ▲                                  ▲                                │     │
//	   │            answered              └───────── failed: a longer pause┘     │
//	   └─────────────────────────────────────────────────────────────────────────┘
//
// Does: says whether a call may be made now, and learns from what became of it. Pauses double from the first to the last,
// each changed at random by up to a fifth, so that many do not come back at the same moment.
//
// Owns: the state of one circuit, in memory.
//
// Never: calls anybody, sleeps, or looks at a clock: the time is passed in.
//
// Read first: [Breaker.Enter].
package breaker
