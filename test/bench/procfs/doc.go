// Package procfs reads what the kernel says of processes.
//
// Does: reads /proc into values: processes with their parents, CPU time and memory, and what the machine is and does. Every
// function takes the file system, so that tests hand it a map of texts.
//
// Never: decides what to measure, nor keeps anything between two calls.
//
// Read first: [Read], then [Processes.Tree].
package procfs
