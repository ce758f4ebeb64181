// Package conditions lists the conditions of all controllers for tests. It reads the condition tables from the source
// of the controllers, without importing them, so that tests of all conditions cover conditions that are added later.
package testkit
