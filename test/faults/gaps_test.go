package faults

// gap is a fault whose explanation is not complete yet.
type gap struct {
	// printed is the part of the explanation that is missing or wrong, and wanted is what it should be.
	printed, wanted string
	// withoutPlans is true if only the explanation without plans is incomplete.
	withoutPlans bool
}

// knownGaps are the rows that are not explained yet. A gap that closes fails the test until it is removed here.
func knownGaps() map[string]gap { return map[string]gap{} }
