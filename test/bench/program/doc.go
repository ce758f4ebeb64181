// Package program is what all commands of the benchmark do alike.
//
// Does: runs a command until it ends or is interrupted, finds the binary to measure, writes files of results.
//
// Owns: exit codes.
//
// Never: measures.
//
// Read first: [Main].
package program
