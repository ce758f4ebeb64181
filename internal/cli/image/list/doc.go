// Package list is the verb "image list".
//
// Does: prints the node images that Docker holds.
//
// Never: builds or removes images.
//
// Read first: Command.
package list
