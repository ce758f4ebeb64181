// Package recording stores calls of hooks in a file, to inspect and repeat them. It defines a recorded call ([Call]),
// reads and writes files with one JSON document per line, replaces the data of Secrets in bodies ([Redact]), and
// extracts the object of a request ([Object]). A body without a Secret is stored unmodified, so that requests can be
// repeated byte for byte.
package recording
