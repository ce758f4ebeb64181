package backend

// Tests outside of the package use these private names.
var (
	BootstrapDataMessage = bootstrapDataMessage
	ParseProviderID      = parseProviderID
	TotalMemory          = totalMemory
)
