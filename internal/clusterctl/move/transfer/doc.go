// Package sides accesses the two management clusters of a move and transfers objects between them. [Endpoint] reads the
// objects of one management cluster; [Transfer] creates and updates objects in the other one, owners first, with their
// owner references and field managers, and compares both. The package does not decide what moves, and deletes nothing.
package transfer
