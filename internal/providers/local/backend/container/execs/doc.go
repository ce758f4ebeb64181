// Package execs remembers which commands in containers are this program's own.
//
// Does: notes a command when it begins and forgets it when Docker tells of its end, or a while later.
//
// Never: runs one.
//
// Read first: Set.
package execs
