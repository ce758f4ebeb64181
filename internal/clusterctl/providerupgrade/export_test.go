package providerupgrade

// Tests outside of the package use these private names.
const (
	ReasonNotInstalled  = reasonNotInstalled
	ReasonStoredVersion = reasonStoredVersion
	ReasonVersion       = reasonVersion
)

var Customisations = customisations
