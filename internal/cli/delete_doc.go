// Package delete implements the delete command. It groups its subcommands and deletes providers if it has the flags of
// clusterctl.
package cli
