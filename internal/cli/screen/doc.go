// Package screen says what the place that a command prints to can show.
//
// Does: tells terminals from files and pipes, and with the environment (NO_COLOR, CLICOLOR_FORCE, TERM, the locale)
// decides about colours, box characters and width.
//
// Owns: that decision.
//
// Never: prints.
//
// Read first: [Of].
package screen
