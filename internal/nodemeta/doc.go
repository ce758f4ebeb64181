// Package nodemeta says what a Node has of its Machine: labels, annotations and taints.
//
// Does: picks the labels and annotations by the domain of their key, with further keys by regular expression, and makes a
// Node have them and the taints, so that what the Machine drops goes and nothing else does.
//
// Never: reads or writes an object of an API: a Node is changed in memory.
//
// Read first: [Metadata].
package nodemeta
