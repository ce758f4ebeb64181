// Package explain is the verb "explain".
//
// Does: prints the last plan that the running manager made for an object: what it did or is about to do, what it waits for, on
// which object, and what ends each wait.
//
// Never: decides anything again, or writes to the API.
//
// Read first: [Command], then [Flags.Manager].
package explain
