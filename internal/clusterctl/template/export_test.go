package template

// Tests outside of the package use these private names.
const NetworkLabel = networkLabel
