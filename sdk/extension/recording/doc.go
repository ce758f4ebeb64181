// Package recording keeps calls of hooks in a file, to look at them and to repeat them.
//
// Does: defines one recorded call ([Call]), writes and reads files of them (one JSON document a line), takes the data
// of Secrets out of bodies ([Redact]), and finds the object that a request is about ([Object]).
//
// Owns: the format of the file.
//
// Never: changes a body that holds no Secret: what is repeated is what was sent, byte for byte.
//
// Read first: [Call].
package recording
