// Package scaffold creates the project of a new Runtime Extension. [Write] (`slipway extension init`) fills a new
// folder with a Go module that builds, passes its tests and can be run with `slipway extension run`. It also writes the
// embedded source of the SDK there, so that the project builds wherever the Go module proxy or a filled module cache is
// available. The templates are in project/ and hooks/. [Update] (`slipway extension update`) replaces the SDK in such a
// project. The package runs no commands.
package scaffold
