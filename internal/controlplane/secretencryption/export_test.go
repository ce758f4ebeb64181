package secretencryption

// Tests outside of the package use these private names.
const (
	ReasonKeyMissing  = reasonKeyMissing
	ReasonKeysInvalid = reasonKeysInvalid
)
