// Package preflight says what speaks against creating a Machine now.
//
// Does: runs a list of named checks ([Checks]) over facts of the caller's type, and has the checks for worker Machines
// ([WorkerChecks]): whether the control plane is stable, and whether its version and that of the Machine fit together.
//
// Never: reads objects, or decides which checks are skipped.
//
// Read first: [Checks], then [Workers].
package preflight
