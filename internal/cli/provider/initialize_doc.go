// Package initialize implements the init command. It determines the providers to install, computes a plan (package
// installation), and executes or prints it.
package provider
