// Package hooktest runs a Runtime Extension for tests and benchmarks: a real TLS server on the loopback address. It
// creates certificate authorities and valid or invalid certificates, serves discovery and handlers, and records the
// requests and the number of connections. The server runs until the test ends.
package hooktest
