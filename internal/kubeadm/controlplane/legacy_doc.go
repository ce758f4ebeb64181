// Package legacy computes the deprecated v1beta1 status of KubeadmControlPlanes: its conditions, and its counters,
// which v1beta1 defines differently. No other package reads this status.
package controlplane
