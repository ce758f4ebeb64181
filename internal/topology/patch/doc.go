// Package patch applies the patches of a ClusterClass to its templates ([Program.Apply]). It processes the patches in
// order: inline patches (selectors, enabledIf, and JSON patches with values, variables or templates) and patches that
// extensions generate. It changes copies of the templates, and only their spec, labels and annotations, and the labels
// and annotations of the objects created from them. The package does not call extensions: their responses are an input,
// and if one is missing, Apply returns an [ExtensionRequest]; the topology controller sends it and calls Apply again.
// Templates are Go templates with sprig functions, but without access to the time, randomness and the environment, and
// with limits on work and output.
//
// [ApplyPatch] applies one patch of an extension to an object, for this package and for package inplace.
//
//	class ──► Compile ──► Program ──► Apply(globals, items, responses) ──► patched items, or requests
package patch
