// Package provider implements the provider command, which groups subcommands for authors of providers.
package provider
