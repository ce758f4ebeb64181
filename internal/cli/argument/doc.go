// Package argument checks the arguments of verbs.
//
// Does: says in one way what is wrong with the number of arguments, or with the name of a verb below a verb, and where
// help is. The errors are faults of kind Invalid, so that their exit code is that of a usage error.
//
// Never: knows what an argument means.
//
// Read first: [One].
package argument
