// Package get implements the get command, which groups its subcommands.
package cli
