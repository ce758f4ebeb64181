// Package cache feeds informers of unstructured objects from informers of the same kinds with Go types ([Relay]).
// Slipway reads the objects of its own providers in both forms: their controllers use Go types, and the core reads them
// as unstructured objects through contracts. With a relay, the API server lists, watches and encodes each change once,
// and the program decodes it once. Do not relay kinds whose objects are copied into other objects, such as templates:
// fields that the Go types do not know are lost.
package cache
