package up

// Tests outside of the package use these private names.
type (
	RunState = runState
	Status   = statusReport
)

const (
	Absent   = stateAbsent
	Running  = stateRunning
	Starting = stateStarting
	Stopped  = stateStopped
)

var Collect = collectStatus
