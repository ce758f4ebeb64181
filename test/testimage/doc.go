// Package testimage builds a small image for tests that need a real container but no Kubernetes. [Import] packs this
// host's shell and a few tools into an image of the local Docker Engine, without pulling anything. Only tests use it.
package testimage
