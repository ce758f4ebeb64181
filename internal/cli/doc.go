// Package create implements the create command, which groups its subcommands.
package cli
