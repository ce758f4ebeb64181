// Package controllers runs kube-controller-manager inside this process.
//
// Does: builds the controller manager from its own flags and runs it, without
// a serving port and without leader election.
//
// Never: chooses which controllers run; internal/plane does.
//
// Read first: New, Manager.Run.
package controllers
