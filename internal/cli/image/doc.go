// Package image implements the image command, which groups its subcommands.
package image
