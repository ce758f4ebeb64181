// Package bootstrapped reads the status of a node's bootstrap from the files that it writes in a container.
// [Traces.Program] returns a shell program that prints them, and [parseStatus] parses its output: whether the script runs or
// has ended, the end of its output, and the reason for kubelet crashes during the bootstrap or after it failed. The
// output is untrusted because users control the node, so texts are limited in size, reduced to one line where they are
// part of a sentence, and stripped of secrets.
package container
