// Package pki makes and keeps the certificates of a Kubernetes control plane.
//
// Does: certificate authorities, leaf certificates, service account signing
// keys and kubeconfig files; keeps them on disk with keys of mode 0600, and
// issues a leaf again when a third of its life is left, when its names or its
// authority changed, or when its files do not fit together.
//
// Owns: the files below the folder it is given.
//
// Never: decides who may do what; a certificate only names a user and groups.
//
// Read first: Folder.
package pki
