// Package quorum is the arithmetic of etcd's quorum.
//
// Does: says of the members of an etcd cluster whether enough of them are healthy to agree ([Members.HasQuorum]), and whether
// enough would be if one of them was removed ([Members.AllowsRemoval]).
//
//	voters          1  2  3  4  5  6  7
//	quorum          1  2  2  3  3  4  4
//	may be lost     0  0  1  1  2  2  3
//
// Learners have no vote and count nowhere.
//
// Never: decides which member goes, or reads one.
//
// Read first: [Members].
package quorum
