package policy

// Tests outside of the package use these private names.
const (
	APIVersion = apiVersion
	Simulated  = simulated
)
