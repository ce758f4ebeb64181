package machine

// Tests outside of the package use these private names.
type (
	Stager        = stager
	StagingState  = stagingState
	StagingTarget = stagingTarget
)
