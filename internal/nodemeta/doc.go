// Package nodemeta says which labels and annotations of a Machine belong on its Node.
//
// Does: picks them by the domain of their key, with further keys by regular expression.
//
// Never: reads or writes an object.
//
// Read first: [Labels].
package nodemeta
