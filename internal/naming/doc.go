// Package naming renders names of objects from the templates that users give.
//
// Does: checks and renders name templates, in the language of Go's text/template with the variables of the kind. A name that is
// too long for a label or a host name is cut, and stays unique by its random part.
//
// A template takes no more time and memory than its length allows: who may write an object may not have more of this process.
//
// Owns: the alphabet and the length of random parts.
//
// Never: generates random numbers; they are passed in.
//
// Read first: [Template].
package naming
