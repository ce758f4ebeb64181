// Package v1alpha1 defines the API of the group controlplane.slipway.dev: HostedControlPlane, its template, and
// EtcdSnapshotPolicy. HostedControlPlane implements version v1beta2 of the Cluster API contract for control planes, for
// a control plane without Machines. The CRDs are generated from the markers (make generate). Validation that CEL does
// not support is in internal/admission; the controller is in internal/hosted.
//
// Zero values are never serialized: fields for which the zero value is significant are pointers, and the others are
// omitted if they are zero. Status is written from these types with server-side apply, so a field that is absent is not
// owned.
//
// +kubebuilder:object:generate=true
// +groupName=controlplane.slipway.dev
package v1alpha1
