package workload

// Tests outside of the package use these private names.
const (
	MaxKubeconfigBytes      = maxKubeconfigBytes
	MaxKubeconfigEntries    = maxKubeconfigEntries
	ReasonKubeconfigInvalid = reasonKubeconfigInvalid
)
