// Package portable is an object as it is between two management clusters.
//
// Does: takes off an object what is only true in the cluster that it was read from, says whether another one has everything of it,
// pauses and marks it.
//
// Never: reads or writes a cluster.
//
// Read first: [Of], [IsCovered].
package portable
