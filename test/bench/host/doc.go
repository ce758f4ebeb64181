// Package host watches what the host of this virtual machine gives to others, because it decides what can be measured.
//
// Does: tells how much was taken while something was done, and waits for a moment in which next to nothing is.
//
// Owns: the patience of one benchmark: for how long, in all, it is held up.
//
// Never: judges what was measured.
//
// Read first: [Host.Quiet].
package host
