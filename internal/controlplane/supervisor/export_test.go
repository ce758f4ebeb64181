package supervisor

// ReasonTransferred is used by tests outside of the package.
const ReasonTransferred = reasonTransferred
