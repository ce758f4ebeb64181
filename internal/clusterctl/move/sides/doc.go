// Package sides is the two management clusters of a move, and how objects get from one to the other.
//
// Does: reads what a management cluster has of the kinds that move ([Side]); creates and updates objects on the other side, owners first,
// with the owners and the managers of fields that they have there, and compares both ([Transfer]).
//
// Never: decides what moves, or deletes anything.
//
// Read first: [Side], then [Transfer.Run].
package sides
