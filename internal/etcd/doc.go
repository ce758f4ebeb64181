// Package etcd asks and changes the etcd members of a workload cluster.
//
// # Does
//
// Reads membership, alarms and the status of each member, moves leadership and removes members, through etcd's own
// client. How a member is reached is up to the caller (Config.Dial). Each member has one connection, which is opened by the
// first call, shared by those after it, and closed when no call was made for a while. A call to one member has a time limit,
// and answers are bounded.
//
// # Owns
//
// The membership of etcd clusters. It writes no object of either API.
//
// # Never
//
// Decides whether a member may go (the controller of the control plane does), or sends a call to the member that is removed.
//
// # Read first
//
// cluster.go (what can be asked), then connect.go.
package etcd
