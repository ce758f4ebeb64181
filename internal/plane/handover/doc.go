// Package handover starts a program that takes the listeners of this process over.
//
// Does: both sides: the parent starts the child, gives it a configuration and open listeners, learns that it accepts the
// configuration, lets it run, learns that it is ready, and stops it; the child receives and reports. Several listeners are one
// to the child.
//
// Owns: the child process. It never outlives its parent: the kernel kills it, and it ends when its standard input does.
//
// Never: knows what is configured, or starts a child again. Programs that were compiled with an older slipway speak it:
// whatever changes between the two sides raises Protocol.
//
// Read first: [Launch], then [Receive].
package handover
