// Package patch applies the patches of a ClusterClass to its templates.
//
// Does: for each patch of a class in order, those in the class (selectors, enabledIf, JSON patches whose values are given, variables
// or templates) and those that extensions generate, changes copies of the templates to which it applies (Program.Apply). What an
// extension has to say comes in as a fact; where it is missing, a Question comes out, which is to be asked before Apply runs again.
// Templates (Go's, with the functions of sprig) have no time, no randomness and no environment, and bounds on work and output.
//
//	class ──► Program ──► Apply(globals, items, answers) ──► patched items, or questions
//
// Never: changes an object that it is given, calls an extension, or touches anything of a template but its spec, labels and
// annotations and those of what is made from it.
//
// Read first: types.go, then apply.go.
package patch
