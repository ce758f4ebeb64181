// Package machine describes the machine and the binary that were measured.
//
// Does: reads the kernel's files and the binary's version.
//
// Never: tells names of hosts, paths or addresses.
//
// Read first: [Describe].
package machine
