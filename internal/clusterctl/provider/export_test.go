package provider

// Tests outside of the package use these private names.
const (
	IPAM             = ipam
	RuntimeExtension = runtimeExtension
)
