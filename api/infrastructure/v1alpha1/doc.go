// Package v1alpha1 holds the kinds of the group infrastructure.slipway.dev: LocalCluster, LocalMachine,
// LocalMachinePool and their templates.
//
// Does: the Go form of Slipway's infrastructure kinds for the local host. They follow version v1beta2 of the
// Cluster API contracts for InfraCluster, InfraMachine and InfraMachinePool, the optional rules included. The
// markers are the source of the CRDs (make generate).
//
// Owns: the names of fields, conditions, finalizers and labels of these kinds.
//
// Never: behaviour. Validation that CEL cannot express is in internal/admission; the controllers are in
// internal/providers/local.
//
// No zero value is serialized: fields whose zero value means something are pointers, the others are left out when
// they are zero. Status is written by server-side apply from this form, so a field that is absent is not owned.
//
// Read first: localcluster.go, then backend.go.
//
// +kubebuilder:object:generate=true
// +groupName=infrastructure.slipway.dev
package v1alpha1
