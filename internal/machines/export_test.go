package machines

// Tests outside of the package use these private names.
type (
	DeleteOrphan  = deleteOrphan
	SetConditions = setConditions
)

const (
	Healthy   = priorityHealthy
	Unhealthy = priorityUnhealthy
	Updating  = priorityUpdating
)

var (
	NewSetConditions = newSetConditions
	NodeAnnotations  = filterAnnotations
)
