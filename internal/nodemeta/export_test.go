package nodemeta

// Tests outside of the package use these private names.
var Annotations = filterAnnotations
