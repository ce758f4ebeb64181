// Package execs records which commands in containers this program has started itself, so that Docker's events about
// their end can be ignored. A command is removed from the record at its end event, or after a timeout.
package container
