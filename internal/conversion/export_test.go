package conversion

// Tests outside of the package use these private names.
const DataAnnotation = dataAnnotation
