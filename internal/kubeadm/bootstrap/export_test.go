package bootstrap

// Tests outside of the package use these private names.
var (
	NewInitLock   = newInitLock
	ParseInitLock = parseInitLock
)
