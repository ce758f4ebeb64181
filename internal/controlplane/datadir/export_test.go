package datadir

// Tests outside of the package use these private names.
const (
	ReasonForeign  = reasonForeign
	ReasonFormat   = reasonFormat
	ReasonSkipped  = reasonSkipped
	ReasonUnusable = reasonUnusable
)

// OverwriteJSON is how [WriteSupervision] writes on a full disk.
var OverwriteJSON = overwriteJSON
