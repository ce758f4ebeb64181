package release

// Tests outside of the package use these private names.
type (
	ComponentOptions = componentOptions
	Program          = program
)

var (
	ManagerObjects  = managerObjects
	ProviderObjects = providerObjects
	ReadArtifact    = readArtifact
	WithDefaults    = withDefaults
)
