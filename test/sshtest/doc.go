// Package sshtest is a host for tests of everything that uses package remote: an SSH server in this process with a
// directory as its file system. Scripts are answered by functions of the test, or run on this machine with the paths of
// the host moved into the directory. A test can cut connections, change keys, refuse users and delay responses.
package sshtest
