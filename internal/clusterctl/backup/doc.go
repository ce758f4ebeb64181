// Package backup keeps the Cluster API objects of a management cluster in one file, an archive.
//
// Does: takes a backup, writes it as an archive, reads the archive and creates the objects again. The Secrets in it may be
// encrypted with age. Every file of an archive has a checksum, and all of them are checked before the first object is created:
//
//	SHA256SUMS       of all other files, as sha256sum writes it
//	backup.json      when it was taken, of what, by which version
//	objects/*.yaml   the objects without their status, one each
//	secrets/*.yaml   the Secrets, or in their place
//	secrets.tar.age  an encrypted archive of them
//
// Never: decides what belongs into a backup, or writes objects itself (package move does both); keeps what is on a host: the data
// of control planes, containers, networks.
//
// Read first: [Archive], then [Take] and [Archive.Restore].
package backup
