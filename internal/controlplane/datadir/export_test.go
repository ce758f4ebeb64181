package datadir

// Tests outside of the package use these private names.
const (
	ReasonForeign  = reasonForeign
	ReasonFormat   = reasonFormat
	ReasonSkipped  = reasonSkipped
	ReasonUnusable = reasonUnusable
)
