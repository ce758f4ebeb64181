package snapshots

// Tests outside of the package use these private names.
const ReasonDamaged = reasonDamaged

var Fetch = fetchSnapshot
