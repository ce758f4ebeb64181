// Package componentflag is the list of flags that a HostedControlPlane may give to its components.
//
// Does: says of a flag and its value whether a component of a hosted control plane may have it. The components are
// processes of this host, so that a flag which names a file, a socket, a URL or an address to listen at would reach the
// host; what is not listed is refused, and the values of what is listed are bounded.
//
// Owns: the lists, and the forms of values.
//
// Never: runs anything, or knows what Slipway itself gives to the components.
//
// Read first: [Problem], then lists.go.
package componentflag
