// Package progress waits for a cluster and tells what the wait is for.
//
// Does: turns a snapshot of a cluster into steps, each done or waiting for something that is named together with
// what will end it ([Creation], [Deletion]; both pure); follows the cluster until all steps are done ([Run]); shows
// the steps as live lines on a terminal ([Live]) or as one line per change elsewhere ([Plain]).
//
// Never: writes to the API; interrupting a wait changes nothing in the cluster.
//
// Read first: [Step], then [Run].
package progress
