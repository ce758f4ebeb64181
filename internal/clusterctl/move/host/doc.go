// Package host hands over what Clusters have on the host of two management clusters of `slipway up`: processes, their folders,
// networks and containers. None is restarted for it.
//
//	source keeps it ─► given ─► folders move ─► taken ─► target keeps it
//	                     └──────────┴─────────────┴─► (rollback) source keeps it
//
// Between "given" and "taken" neither of the two does anything about it: it keeps running. Each of the arrows is the writing of one
// file, or the renaming of one folder, so that what was interrupted is continued, or taken back, from what is on disk.
//
// Does: finds out whether both management clusters, and this command, are on one host and of one user ([Find]); reads what
// Clusters have there ([Pair.Read]), says what is to be done and what keeps it from being done ([Survey]), and does it.
//
// Owns: the records of both data directories while a move is under way (package custody), the place of folders.
//
// Never: believes an object, a status or a journal about what belongs to whom. Names of folders follow from the names of objects in
// the namespaces that an administrator moves, and what is Docker's is taken by the records of the data directory of the source.
//
// Read first: [Survey], then [Pair.Give].
package host
