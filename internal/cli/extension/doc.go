// Package extension implements the extension command: tools for authors and operators of Runtime Extensions. The
// subcommands parse flags and print results; package extensiontools does the work. Only "call" prints whole responses,
// because they may contain secrets. "run" and "record" print the message of a response, and "replay" the values that
// differ. No subcommand prints a request of the manager. The files are named after the subcommands.
//
// The subcommands differ in what they need and change:
//
//	                  management cluster   extension process   writes
//	init, update      no                   no                  files of the project (extensiontools/scaffold)
//	example, openapi  no                   no                  nothing
//	replay            no                   started             nothing
//	run               yes                  started             a registration, which it removes at the end
//	record            yes                  started             the same, and a new file without the data of Secrets
//	call              yes                  running             nothing
//	refresh           yes                  running             an annotation that triggers a discovery
//	list, check       yes                  no                  nothing
//	delete            yes                  no                  removes a registration; the process continues
package extension
