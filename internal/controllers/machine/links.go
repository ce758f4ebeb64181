package machine

import (
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"k8s.io/utils/ptr"

	"github.com/slipwayhq/slipway/internal/reference"
	"github.com/slipwayhq/slipway/sdk/contract"
)

// The provider objects of a Machine (package reference). [decide], act and [report] use them through the methods
// bootstrap and infra. These return a [reference.Link], the reference with its object. The Machine becomes their
// controller in place of their creator: a MachineSet, a MachinePool or a control plane. The bootstrap config is
// expendable once it has created its data.
var (
	bootstrapConfig = reference.Role{
		Owner: clusterv1.GroupVersion.WithKind("Machine"), Name: "bootstrap config", ReplacesController: true, Expendable: true,
		Condition: clusterv1.MachineBootstrapConfigReadyCondition, Source: clusterv1.ReadyCondition,
		DoneReason: clusterv1.ReadyReason, NotDoneReason: clusterv1.NotReadyReason,
	}
	infrastructure = reference.Role{
		Owner: clusterv1.GroupVersion.WithKind("Machine"), Name: "infrastructure", ReplacesController: true,
		Condition: clusterv1.MachineInfrastructureReadyCondition, Source: clusterv1.ReadyCondition,
		DoneReason: clusterv1.ReadyReason, NotDoneReason: clusterv1.NotReadyReason,
	}
)

func (s snapshot) bootstrap() reference.Link {
	return s.link(bootstrapConfig, s.Machine.Spec.Bootstrap.ConfigRef, s.Bootstrap, s.Machine.Status.Initialization.BootstrapDataSecretCreated)
}

func (s snapshot) infra() reference.Link {
	return s.link(infrastructure, s.Machine.Spec.InfrastructureRef, s.Infra, s.Machine.Status.Initialization.InfrastructureProvisioned)
}

// update returns the in-place update of the Machine. [decide], act and the condition Updating call it.
func (s snapshot) update() inPlaceUpdate {
	return inPlaceUpdate{Machine: s.Machine, Infrastructure: s.infra(), Bootstrap: s.bootstrap(), Enabled: s.Settings.InPlaceUpdates, Progress: s.Progress}
}

func (s snapshot) link(r reference.Role, ref clusterv1.ContractVersionedObjectReference, v contract.View, reached *bool) reference.Link {
	return reference.Link{Role: r, From: s.Machine, Cluster: s.Machine.Spec.ClusterName, Ref: ref, View: v, Reached: ptr.Deref(reached, false)}
}
