// Package lint is the verb "provider lint".
//
// Does: prints what package clusterctl/lint finds in releases of providers.
//
// Never: changes a file, or needs a cluster.
//
// Read first: Command.
package lint
