// Package world runs controllers on a copy of the world, one reconciliation after the other, on a clock of its own.
//
// Does: is the manager of the controllers ([World.Setup]): their client and cache are an API in memory, their queues are handed
// out in a fixed order, their timers end when nothing else is left to do. The controllers are those of the product, unchanged.
//
//	queues ─► one reconciliation ─► writes ─► events ─► caches' handlers ─► queues
//	   ▲                                        └─► who plays the rest of the world ─► timers
//	   └── the clock moves to the next timer ◄── nothing is left to do
//
// Never: calls anything outside of this process, knows a kind, or decides what a provider would do (package played).
//
// Read first: [World.Settle].
package world
