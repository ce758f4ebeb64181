// Package testimage makes a small image for tests that need a real container and no Kubernetes.
//
// Does: packs this host's shell and a few of its tools into an image of the local Docker Engine ([Import]). Nothing is
// pulled.
//
// Owns: the image that it was asked for.
//
// Never: is used by the product.
//
// Read first: [Import].
package testimage
