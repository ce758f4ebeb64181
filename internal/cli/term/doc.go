// Package term provides what commands share at the terminal. [Env] contains the streams, the environment variables, the
// clock and the path of the binary as values, so that commands need no globals and tests can replace each value.
// [Format] is the -o flag: results are printed as text, JSON or YAML, and each command formats its own text.
// [DetectScreen] determines the capabilities of a writer (colors, box characters, width) from the terminal and from
// NO_COLOR, CLICOLOR_FORCE, TERM and the locale. [ExactlyOneArgument] and [MarkGroup] validate arguments: their errors
// refer to the help, and lead to the exit code of usage errors. [ConfigFlags] is the flag --config of the clusterctl
// commands.
//
// Commands that replace the data of a cluster share one sequence ([ConfirmFlags.Run]):
//
//	--dry-run             print the plan
//	work not started yet  print the plan, confirm unless --yes is set, do the work, print the result
//	work in progress      print the plan, wait until the work is complete, print the result
package term
