// Package kstatus computes the status that generic tools derive from an object: Flux, Helm 4 and others wait for
// objects of any kind with the kstatus library. It is a package of its own, so that only the tests that need it link
// the library.
package kstatus
