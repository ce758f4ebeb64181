// Package apply implements the upgrade apply command. It reads the installed and the requested versions, computes a
// plan (package providerupgrade), and executes or prints it. If providers do not become available, it rolls back.
package provider
