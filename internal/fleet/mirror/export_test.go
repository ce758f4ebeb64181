package mirror

// NewStore is exported for tests.
func NewStore(onChange func(Change)) *Store { return newStore(onChange) }
