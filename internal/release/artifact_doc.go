// Package artifact writes the release files that contain the program: archive, Debian package, image and bill of
// materials. The files are reproducible: they depend only on the binary and the time of the [Program].
package release
