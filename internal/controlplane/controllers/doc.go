// Package controllers runs kube-controller-manager in this process, built from its own flags, without a
// serving port and without leader election. The flags, including the enabled controllers, are in
// internal/controlplane. It is separate from package components because only controllers.go is compiled into
// programs of other Kubernetes versions (sources.go in the root of the repository): only management clusters
// need the separate controller for aggregated roles ([RunAggregation]).
package controllers
