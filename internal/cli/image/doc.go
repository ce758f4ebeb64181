// Package image is the verb "image".
//
// Does: groups the verbs below it.
//
// Never: does anything itself.
//
// Read first: the packages build, list and load.
package image
