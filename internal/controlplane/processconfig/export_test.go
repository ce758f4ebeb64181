package processconfig

// Tests outside of the package use these private names.
const ReasonDataVersion = reasonDataVersion
