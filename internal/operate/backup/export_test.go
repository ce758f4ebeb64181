package backup

// Tests outside of the package use these private names.
const (
	ReasonCannotRestore = reasonCannotRestore
	ReasonEncrypted     = reasonEncrypted
	ReasonFile          = reasonFile
)

var Read = readArchive
