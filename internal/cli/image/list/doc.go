// Package list is the verb "image list".
//
// Does: prints the node images that Docker holds, and which of them lack a month of fixes.
//
// Never: builds or removes images.
//
// Read first: Command.
package list
