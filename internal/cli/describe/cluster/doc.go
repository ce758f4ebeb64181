// Package cluster is the verb "describe cluster".
//
// Does: prints the objects of a cluster as a tree, with what each says of itself: for people as a table, for
// programs as JSON or YAML.
//
// Never: writes to the API.
//
// Read first: Command.
package cluster
