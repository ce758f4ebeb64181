// Package componentflag lists the flags that a HostedControlPlane may set on its components, and validates
// their values. The components are processes of the host, therefore a flag that names a file, a socket, a URL
// or a listen address would reach the host. Flags that are not listed are rejected, and the values of listed
// flags are bounded. Flags that Slipway sets itself are not part of the lists. Start at [FlagProblem] and
// lists.go.
package componentconfig
