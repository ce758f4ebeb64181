// Package describe implements the describe command, which groups its subcommands.
package cli
