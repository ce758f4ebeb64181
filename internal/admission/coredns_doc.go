// Package coredns validates the CoreDNS version of a KubeadmControlPlane. It parses the version from the tag of an
// image ([parseTag]), and checks whether the Corefile of a cluster can be migrated from one version to another
// ([ValidateUpgrade]).
package admission
