// Package bootstrapped tells how far the bootstrap of a node is, from the traces that it leaves in a container.
//
// Does: writes the program that prints them ([Traces.Program]), and reads what it prints ([Parse]): whether the script runs or has ended,
// the end of its output, and while it runs or after it failed, why the kubelet ends again and again.
//
// Never: runs anything (package container does). What it reads comes from the node, whose owner may have printed anything: it is bounded, on
// one line where it is a sentence, and without secrets.
//
// Read first: [Parse].
package bootstrapped
