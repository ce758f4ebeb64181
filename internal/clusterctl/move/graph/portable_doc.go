// Package portable converts objects for the transfer between management clusters. It removes cluster-specific content
// ([Strip]), checks whether one object contains the content of another ([Contains]), and pauses and annotates objects. It
// accesses no cluster.
package graph
