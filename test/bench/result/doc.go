// Package result is what a run of the benchmark found.
//
// Does: holds figures with their goals, steps, counts and the machine they were measured on; prints them as a table and
// as JSON.
//
// Owns: the layout of the JSON file.
//
// Never: measures.
//
// Read first: [Report], [Figure].
package result
