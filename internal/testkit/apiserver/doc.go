// Package apiserver gives a test a real Kubernetes API server: the management
// cluster of the slipway binary, in a folder of its own, on a free loopback
// port.
//
// Does: builds the binary once per machine and source state (or takes the one
// that SLIPWAY_BIN names), runs it as a child that ends with the test process
// even when that is killed, installs CRDs and objects, and hands out an
// administrator's client configuration.
//
// Owns: the child and its temporary folder.
//
// Never: runs controllers or webhooks of Slipway, or links Kubernetes' server
// code into the test.
//
// Read first: Main, Start, CRDs.
package apiserver
