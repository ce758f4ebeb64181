// Package ui implements the command "slipway ui". It connects to the management clusters of the flags, starts the server of
// package internal/ui on a loopback address, and prints the address with the token until the command is interrupted.
//
// The flags --kubeconfig and --kubeconfig-context may be repeated; every management cluster gets a tab:
//
//	nothing                       the management cluster that every other command uses
//	several kubeconfigs           the current context of each
//	one kubeconfig, contexts      each context of it
//	several of both               the first kubeconfig with the first context, and so on
package ui
