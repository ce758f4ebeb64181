// Package plans stores the last plans of every object and serves them to users who may read the object.
// [Store] records for each object and controller what the last reconciliation did, what it waits for and why.
// [Handler] serves the records at GET /debug/plans/<group>/<kind>/<namespace>/<name> for `slipway explain`.
// It authenticates users by a verified client certificate or a TokenReview, and authorizes them with a
// SubjectAccessReview for getting the object. The response to an unauthorized user does not reveal whether
// the object exists. The package never reads the objects themselves. Records are bounded in size, and deleted
// with their objects.
package manager
