// Package cluster implements the describe cluster command, which prints the objects of a cluster as a tree with their
// conditions: as a table, or as JSON or YAML. It only reads from the API.
package cluster
