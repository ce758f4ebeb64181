// Package scaffold writes the project of a new Runtime Extension.
//
// Does: [Write] fills a new folder with a Go module that builds, passes its test and can be run with `slipway extension
// run`. The SDK it uses is written beside it, from the source that is embedded in this binary, so that the project
// builds wherever the Go module proxy, or a filled module cache, can be reached.
//
// Owns: the files of project/, which are the templates.
//
// Never: writes into a folder that holds something, or runs a command.
//
// Read first: [Write].
package scaffold
