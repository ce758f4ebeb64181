// Package v1alpha1 holds the kinds of the group controlplane.slipway.dev: HostedControlPlane and its template, and
// EtcdSnapshotPolicy.
//
// Does: the Go form of Slipway's hosted control plane. It follows version v1beta2 of the Cluster API contract for
// control planes, for a control plane without Machines. The markers are the source of the CRDs (make generate).
//
// Owns: the names of fields, conditions and finalizers of these kinds.
//
// Never: behaviour. Validation that CEL cannot express is in internal/admission; the controller is in
// internal/providers/hosted.
//
// No zero value is serialized: fields whose zero value means something are pointers, the others are left out when
// they are zero. Status is written by server-side apply from this form, so a field that is absent is not owned.
//
// Read first: hostedcontrolplane.go.
//
// +kubebuilder:object:generate=true
// +groupName=controlplane.slipway.dev
package v1alpha1
