// Package apply is the verb "upgrade apply".
//
// Does: reads what is installed and the versions that it is to have, makes a plan (package providerupgrade), and carries it out or
// prints it; goes back when providers do not become available.
//
// Never: decides what is changed.
//
// Read first: Command.
package apply
