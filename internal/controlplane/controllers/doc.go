// Package controllers runs kube-controller-manager in this process, built from its own flags, without a
// serving port and without leader election. The flags, including the enabled controllers, are in
// internal/controlplane. Start at New and Manager.Run.
package controllers
