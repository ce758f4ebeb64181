// Package upgrade implements the upgrade command, which groups its subcommands.
package cli
