package uidisolation

// Tests outside of the package use these private names.
const (
	FirstID = firstID
	IDCount = idCount
)
