// Package world runs controllers on a copy of a management cluster, one reconciliation at a time, with a simulated
// clock. It acts as the manager of the controllers ([World.Setup]): their client and cache are an in-memory API, their
// queues are processed in a fixed order, and timers expire when there is nothing else to do. The controllers are the
// production ones, unchanged.
//
//	queues ─► one reconciliation ─► writes ─► events ─► cache handlers ─► queues
//	   ▲                                        └─► simulated components ─► timers
//	   └── the clock advances to the next timer ◄── queues are empty
//
// Nothing outside of the process is called. Package played simulates the providers. Start with [World.Settle].
package world
