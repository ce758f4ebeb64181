// Package heap sets up the garbage collector of this process for what the process is about to do, and says which process
// the kernel is to kill first.
//
// Does: lets a control plane start without collecting garbage, keeps the heap small afterwards, and lets it grow for as
// long as the process is busy. What is not needed at rest, unused parts of the heap and pages of the program, it gives back.
//
// Owns: the percent and the limit that package debug sets for the whole process. A GOGC or GOMEMLIMIT in the environment
// takes precedence.
//
// Never: knows what runs in the process.
//
// Read first: Starting, Collect.
package heap
