package progress

// Tests outside of the package use these private names.
var Creation = creation
