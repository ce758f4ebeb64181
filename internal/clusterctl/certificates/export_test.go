package certificates

// Tests outside of the package use these private names.
const Other = otherCertManager
