// Package argument validates command arguments. It reports a wrong number of arguments or an unknown subcommand
// uniformly, with a reference to the help. The errors are faults of kind Invalid and therefore lead to the exit code of
// usage errors.
package term
