// Package coredns judges the versions of CoreDNS that a KubeadmControlPlane asks for.
//
// Does: reads a version out of the tag of an image ([ParseTag]); says whether the Corefile of a cluster can be migrated from one
// version to another ([ValidateUpgrade]).
//
// Never: migrates a Corefile, or reads one.
//
// Read first: [ValidateUpgrade].
package coredns
