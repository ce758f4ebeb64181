// Package preflight checks whether a Machine may be created now. It runs a list of named checks ([PreflightChecks]) on an
// input type of the caller, and contains the checks for worker Machines ([WorkerChecks]): whether the control plane
// is stable, and whether its version is compatible with the Machine's. It reads no objects and does not decide
// which checks are skipped. Start with [PreflightChecks], then read [PreflightWorkers].
package machines
