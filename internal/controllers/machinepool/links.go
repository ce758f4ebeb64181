package machinepool

import (
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"k8s.io/utils/ptr"

	"github.com/slipwayhq/slipway/internal/reference"
	"github.com/slipwayhq/slipway/sdk/contract"
)

// The provider objects of a MachinePool (package reference). [decide], act and [report] use them through the methods
// bootstrap and infra. These return a [reference.Link], the reference with its object. Their failures are reported for
// every contract version, because many problems of a pool are not reported in a condition.
var (
	bootstrapConfig = reference.Role{
		Owner: clusterv1.GroupVersion.WithKind("MachinePool"), Name: "bootstrap config", AnyContract: true,
		Condition: clusterv1.BootstrapConfigReadyCondition, Source: clusterv1.ReadyCondition,
		DoneReason: clusterv1.ReadyReason, NotDoneReason: clusterv1.NotReadyReason,
	}
	infrastructure = reference.Role{
		Owner: clusterv1.GroupVersion.WithKind("MachinePool"), Name: "infrastructure", AnyContract: true,
		Condition: clusterv1.InfrastructureReadyCondition, Source: clusterv1.ReadyCondition,
		DoneReason: clusterv1.ReadyReason, NotDoneReason: clusterv1.NotReadyReason,
	}
)

// bootstrap returns the link to the bootstrap config, for [decide], act and the conditions.
func (s snapshot) bootstrap() reference.Link {
	return s.link(bootstrapConfig, s.Pool.Spec.Template.Spec.Bootstrap.ConfigRef, s.Bootstrap, s.Pool.Status.Initialization.BootstrapDataSecretCreated)
}

func (s snapshot) infra() reference.Link {
	return s.link(infrastructure, s.Pool.Spec.Template.Spec.InfrastructureRef, s.Infra, s.Pool.Status.Initialization.InfrastructureProvisioned)
}

func (s snapshot) link(r reference.Role, ref clusterv1.ContractVersionedObjectReference, v contract.View, reached *bool) reference.Link {
	return reference.Link{Role: r, From: s.Pool, Cluster: s.Pool.Spec.ClusterName, Ref: ref, View: v, Reached: ptr.Deref(reached, false)}
}

// hasUsableInfra reports whether the infrastructure exists and all its reported fields are readable. The plans of
// Machines and Nodes require it.
func hasUsableInfra(s snapshot) bool {
	l := s.infra()
	return l.Presence() == contract.Found && l.Problem() == ""
}
