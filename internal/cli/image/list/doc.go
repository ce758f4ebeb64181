// Package list is the verb "image list".
//
// Does: prints the node images that Docker holds.
//
// Owns: nothing.
//
// Never: builds or removes images.
//
// Read first: Command.
package list
