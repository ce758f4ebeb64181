// Package testkit contains helpers for the tests of several packages. [FailEachWrite] runs a scenario with the fake
// client once for each of its writes, and another write fails in each run: a controller with idempotent actions reaches
// the same final state in every run. [AllConditions] reads the condition tables of all controllers from their source,
// without importing them, so that tests of all conditions cover conditions that are added later. [CompareGolden]
// compares test output with a golden file, or writes the file if the test runs with the flag -update, which this
// package defines. [RunBackground] runs a function until the test ends. [StartOIDCIssuer] starts an OpenID Connect
// provider on loopback. [Terminal] opens a pseudo terminal. [ProviderObject] checks what all provider contracts require.
// Helpers with more dependencies are in package apiserver and in the other packages of the folder test.
package testkit
