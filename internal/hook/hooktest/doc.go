// Package hooktest plays an extension in tests: a real TLS server on the loopback address.
//
// Does: makes certificate authorities and certificates of every sort, good or bad; serves discovery and handlers, and
// counts the requests and over how many connections.
//
// Owns: the server, until the test ends.
//
// Never: is part of the program; it is imported by tests and benchmarks only.
//
// Read first: [Start].
package hooktest
