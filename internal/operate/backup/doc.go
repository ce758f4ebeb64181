// Package backup saves the Cluster API objects of a management cluster in one archive file ([Take]), and restores them
// ([Archive.Restore]). The Secrets can be encrypted with age. `slipway backup` and `slipway restore` use this package.
// Every file in an archive has a checksum, and all checksums are verified before the first object is created:
//
//	SHA256SUMS       checksums of all other files, in the format of sha256sum
//	backup.json      the time, the source and the version of the backup
//	objects/*.yaml   the objects without status, one per file
//	secrets/*.yaml   the Secrets, or instead
//	secrets.tar.age  an encrypted archive of them
//
// Package move selects the objects and writes them. An archive does not contain host resources: the data of control
// planes, containers, networks.
package backup
