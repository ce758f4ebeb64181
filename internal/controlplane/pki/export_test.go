package pki

// Tests outside of the package use these private names.
const (
	AuthorityLifetime = authorityLifetime
	ECDSAP256         = ecdsaP256
	LeafLifetime      = leafLifetime
)
