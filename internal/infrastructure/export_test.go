package infrastructure

// Tests outside of the package use these private names.
var BootstrapDataMessage = bootstrapDataMessage
