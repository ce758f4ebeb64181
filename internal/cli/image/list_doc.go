// Package list implements the image list command. It prints the node images in Docker, and which of them are more than
// a month behind in fixes.
package image
