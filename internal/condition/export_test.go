package condition

// Tests outside of the package use these private names.
const MaxMessage = maxMessage
