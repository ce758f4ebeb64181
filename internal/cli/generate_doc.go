// Package generate implements the generate command, which groups its subcommands.
package cli
