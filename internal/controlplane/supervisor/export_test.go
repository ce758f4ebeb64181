package supervisor

// Tests outside of the package use these private names.
const (
	MaxSize           = maxSize
	ReasonTransferred = reasonTransferred
)
