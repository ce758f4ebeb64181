// Package kernel is what nodes in containers share with their host: capabilities, limits of inotify, routes and addresses.
//
// Does: reads what the host refuses to containers and which ranges of addresses it uses, and raises limits that are too low for
// more than a few nodes.
//
// Owns: the limits fs.inotify of the host, which it raises and never lowers.
//
// Never: talks to Docker.
//
// Read first: [Host].
package kernel
