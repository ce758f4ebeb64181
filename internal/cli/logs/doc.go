// Package logs is the verb "logs".
//
// Does: prints the log of the management cluster and its manager, of a hosted control plane, or the journal of a node in a
// container. It reads files and asks Docker, so that it works when the API server does not.
//
// Never: reads logs of Pods; kubectl does. Reaches other hosts.
//
// Read first: Command.
package logs
