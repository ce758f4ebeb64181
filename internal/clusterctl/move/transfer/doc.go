// Package transfer accesses the two management clusters of a move and transfers objects between them. Only package
// move calls it: for the plan and the phases of a move, for exports to files and for restores from files. [Endpoint]
// reads, pauses and resumes the objects of one management cluster; [Transfer] creates and updates objects in the other
// one, owners first, with their owner references and field managers, and compares both; [Survey] finds the objects that
// a move would leave behind. The package does not select the objects to move (package graph does), and deletes nothing
// (package move does).
package transfer
