// Package initialize is the verb "init".
//
// Does: reads which providers are to be installed and which are there, makes a plan (package installation), and carries it
// out or prints it.
//
// Never: decides what is installed.
//
// Read first: Command.
package initialize
