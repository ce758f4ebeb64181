// Package screen determines the capabilities of a command's output. It distinguishes terminals from files and pipes,
// and decides about colors, box characters and width with the environment (NO_COLOR, CLICOLOR_FORCE, TERM, the locale).
package term
