package container

// Tests outside of the package use these private names.
type PathGuard = pathGuard
