// Package host transfers the ownership of Clusters' host resources between two `slipway up` management clusters on the
// same host: processes, their folders, networks and containers. Nothing is restarted.
//
//	source owns ─► outgoing recorded ─► folders move ─► incoming recorded ─► target owns
//	                  └────────────────────┴─────────────────┴─► (rollback) source owns
//
// Between the two records neither management cluster acts on the resources, which continue to run. Each arrow is the
// write of one file or the rename of one folder, so that an interrupted transfer can be continued or rolled back from
// the state on disk.
//
// [FindHost] checks whether both management clusters and this command are on one host and owned by the same user;
// [Pair.Read] reads the host resources of Clusters; [hostSurvey] computes what to transfer and the problems that prevent
// it; [Pair.Give] executes it. During a move the package owns the records in both data directories (package custody)
// and moves the folders.
//
// Objects, status and journal are not trusted for ownership: the names of folders derive from the names of objects in
// the namespaces that an administrator moves, and Docker resources are determined by the records in the data directory
// of the source.
package move
