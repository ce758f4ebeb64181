// Package releases keeps the Kubernetes releases that this host can run besides the one of this build.
//
// Does: adds a release, compiled from its Go modules or imported from an archive; lists, exports and removes releases; finds
// the program of a release, and checks that it is unchanged.
//
// Owns: the folder kubernetes of the data directory. Each release is a folder with a manifest and a program; it appears whole
// or not at all, and nothing in it changes afterwards.
//
// Never: starts a program (internal/plane), knows clusters, builds node images (internal/nodeimage).
//
// Read first: [Store], then [Manifest], then [Compiler].
package releases
