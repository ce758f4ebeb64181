// Package artifact is the files of a release that hold the program: archive, Debian package, image and bill of materials.
//
// Does: writes each of them from the binary so that the same binary and time give the same bytes.
//
// Never: builds the binary; knows providers or manifests.
//
// Read first: [Program].
package artifact
