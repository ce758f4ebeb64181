// Package explain implements the explain command. It prints the last plan that the running manager made for an object:
// its actions, and what it waits for, on which object, and what ends each wait. It only reads from the manager and the
// API. Start with [ExplainCommand], then [Flags.Manager].
package plan
