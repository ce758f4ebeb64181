package repository

// Tests outside of the package use these private names.
const (
	DefaultCertManagerVersion = defaultCertManagerVersion
	Latest                    = latestVersion
	ReasonUnreachable         = reasonUnreachable
)

var (
	ParseConfig = parseConfig
)
