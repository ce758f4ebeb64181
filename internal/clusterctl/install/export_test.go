package install

// Tests outside of the package use these private names.
const (
	None          = noProvider
	ReasonCRDName = reasonCRDName
)

var BuiltinSteps = builtinSteps
