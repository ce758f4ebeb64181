// Package testimage builds a small image for tests that need a real container but no Kubernetes. [Import] packs this
// host's shell and a few tools into an image of the local Docker Engine, without pulling anything. It is a package of
// its own, because tests of several packages import it.
package testimage
