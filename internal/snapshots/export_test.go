package snapshots

// Tests outside of the package use these private names.
type S3Config = s3Config

const ReasonDamaged = reasonDamaged

var (
	Fetch     = fetchSnapshot
	NewFolder = newFolder
	NewS3     = newS3
)
