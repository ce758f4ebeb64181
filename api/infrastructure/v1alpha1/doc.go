// Package v1alpha1 defines the API of the group infrastructure.slipway.dev: LocalCluster, LocalMachine,
// LocalMachinePool and their templates, the infrastructure kinds for the local host, and SSHHost, SSHCluster, SSHMachine
// and their templates, the infrastructure kinds for machines that are reached over SSH. They implement version v1beta2 of
// the Cluster API contracts for InfraCluster, InfraMachine and InfraMachinePool, including the optional rules. The CRDs
// are generated from the markers (make generate). Validation that CEL does not support is in internal/admission; the
// controllers are in internal/local and internal/ssh.
//
// Zero values are never serialized: fields for which the zero value is significant are pointers, and the others are
// omitted if they are zero. Status is written from these types with server-side apply, so a field that is absent is not
// owned.
//
// +kubebuilder:object:generate=true
// +groupName=infrastructure.slipway.dev
package v1alpha1
