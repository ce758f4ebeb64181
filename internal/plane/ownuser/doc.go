// Package ownuser gives the process of each hosted control plane a user of its own where Slipway runs as root, and reads what that process
// writes without trusting it.
//
// Does: chooses a number that is user and group of one control plane ([Assign]), gives it what its process writes ([Give]), makes the
// process that user for good ([Become]), and ends every process of it ([Kill]). Opens files in the folder of a control plane, whose process
// may be taken over: no links, no pipes, no files of others ([Read], [ReadOurs], [Open], [Append]).
//
// The folder of a control plane with a user, and the folders pki and log in it, belong to root and to the group of the user; they are
// writable to both and sticky. So the process creates and replaces its own files there, and not those that the manager wrote. The
// group of the folder is the record of the number: it is there before the first process of that user, moves with the folder, and is gone with it.
// The data directory around it stays closed: the process works in its folder, which it was started in, and opens nothing by an absolute path.
//
// Owns: owner, group and mode of the folder of a control plane and of what is in it.
//
// Never: knows what the files mean, starts a process, or does anything where Slipway does not run as root ([Unavailable]).
//
// Read first: [Assign], [Give], [Become].
package ownuser
