package backend

// Tests outside of the package use these private names.
var (
	ParseProviderID = parseProviderID
	TotalMemory     = totalMemory
)
