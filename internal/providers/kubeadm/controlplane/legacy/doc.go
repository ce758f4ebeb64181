// Package legacy is the deprecated status of KubeadmControlPlanes in v1beta1.
//
// Does: projects the conditions, and counts the Machines as v1beta1 does.
//
// Never: is read by anything here.
//
// Read first: [Status].
package legacy
