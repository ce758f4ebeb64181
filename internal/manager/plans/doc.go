// Package plans keeps the last plans of every object, and serves them to who may read the object.
//
// Does: remembers for each object what each of its controllers did last, what it waits for and why ([Store], a loop.Plans), and
// answers GET /debug/plans/<group>/<kind>/<namespace>/<name> with it (`slipway explain`). A client certificate that the server verified,
// or a TokenReview, tells who asks; a SubjectAccessReview whether they may get the object. Who may not learns nothing, not even
// whether there is one.
//
// Owns: a bounded record for each object that exists and each controller that reconciles it.
//
// Never: reads an object, or changes anything.
//
// Read first: [Store].
package plans
