// Package lint implements the provider lint command. It prints the findings of package clusterctl/lint for releases of
// providers, without a cluster.
package provider
