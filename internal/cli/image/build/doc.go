// Package build is the verb "image build".
//
// Does: makes the node image for a Kubernetes version in Docker, and tells about each step (package nodeimage).
//
// Never: pulls an image.
//
// Read first: Command.
package build
