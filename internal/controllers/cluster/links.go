package cluster

import (
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"k8s.io/utils/ptr"

	"github.com/slipwayhq/slipway/internal/reference"
	"github.com/slipwayhq/slipway/sdk/contract"
)

// The provider objects of a Cluster (package reference). [decide], act and [report] use them through the methods infra
// and control. These return a [reference.Link], the reference with its object. A link is reached once the object was
// provisioned or initialized.
var (
	infrastructure = reference.Role{
		Owner: clusterv1.GroupVersion.WithKind(clusterv1.ClusterKind), Name: "infrastructure",
		Condition: clusterv1.ClusterInfrastructureReadyCondition, Source: clusterv1.ReadyCondition,
		DoneReason: clusterv1.ReadyReason, NotDoneReason: clusterv1.NotReadyReason,
	}
	controlPlane = reference.Role{
		Owner: clusterv1.GroupVersion.WithKind(clusterv1.ClusterKind), Name: "control plane",
		Condition: clusterv1.ClusterControlPlaneAvailableCondition, Source: clusterv1.AvailableCondition,
		DoneReason: clusterv1.AvailableReason, NotDoneReason: clusterv1.NotAvailableReason,
	}
)

// infra returns the link to the infrastructure. It counts as reached if the Cluster needs no infrastructure. A
// Cluster with a topology always needs it, because the topology sets the reference later. [decide], act and the
// conditions call it.
func (s snapshot) infra() reference.Link {
	ref := s.Cluster.Spec.InfrastructureRef
	reached := ptr.Deref(s.Cluster.Status.Initialization.InfrastructureProvisioned, false) || !ref.IsDefined() && !s.Cluster.Spec.Topology.IsDefined() && !deleting(s)
	return s.link(infrastructure, ref, s.Infra, reached)
}

// control returns the link to the control plane. Without a control plane object, it counts as reached if a control
// plane Machine has a Node. [decide], act and the conditions call it.
func (s snapshot) control() reference.Link {
	ref := s.Cluster.Spec.ControlPlaneRef
	reached := ptr.Deref(s.Cluster.Status.Initialization.ControlPlaneInitialized, false) || !ref.IsDefined() && hasControlPlaneNode(s)
	return s.link(controlPlane, ref, s.ControlPlane, reached)
}

// link returns one of the references. A Cluster with a topology is the controller of the referenced object, because
// the object was created for it.
func (s snapshot) link(r reference.Role, ref clusterv1.ContractVersionedObjectReference, v contract.View, reached bool) reference.Link {
	return reference.Link{
		Role: r, From: s.Cluster, Cluster: s.Cluster.Name, Ref: ref, View: v, Reached: reached, Shared: !s.Cluster.Spec.Topology.IsDefined(),
	}
}
