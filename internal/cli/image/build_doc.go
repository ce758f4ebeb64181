// Package build implements the image build command. It builds the node image for a Kubernetes version in Docker without
// pulling images, and prints the progress of each step (package nodeimage).
package image
