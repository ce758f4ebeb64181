package contract

import (
	"cmp"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// InfraMachineView is an infrastructure machine with the fields of the contract.
type InfraMachineView struct {
	Object
	// Provisioned is true once the machine's infrastructure is provisioned.
	Provisioned Field[bool]
	// ProviderID equals spec.providerID of the Node.
	ProviderID Field[string]
	// FailureDomain is the failure domain of the machine: from status; from spec in contract v1beta1.
	FailureDomain Field[string]
	// SpecFailureDomain is the deprecated spec.failureDomain of both contracts. If a provider sets it, the Machine's
	// spec is updated to it.
	SpecFailureDomain Field[string]
	// Addresses are the addresses of the machine.
	Addresses Field[[]clusterv1.MachineAddress]
	// Interruptible machines can be terminated by their infrastructure at any time.
	Interruptible Field[bool]
	// Removed is true if a condition is False with the reason [ReasonMachineRemoved].
	Removed bool
	// Failed is true if a condition is False with the reason [ReasonBootstrapFailed].
	Failed bool
}

// ReasonBootstrapFailed is the reason of a False condition when the bootstrap data failed and is not executed again, so
// that the machine never becomes a node. The contract has no field for this. LocalMachine reports it in the condition
// BootstrapExecSucceeded; other providers may use any condition.
const ReasonBootstrapFailed = "BootstrapFailed"

// ReasonMachineRemoved is the reason of a False condition when the machine no longer exists, so that waiting for its
// workloads is unnecessary. The contract has no field for this. LocalMachine reports it in the condition
// MachineProvisioned; other providers may use any condition.
const ReasonMachineRemoved = "MachineRemoved"

// InfraMachine returns the view of an infrastructure machine.
func InfraMachine(o Object) InfraMachineView {
	domain, inSpec := read[string](o, "status.failureDomain"), read[string](o, "spec.failureDomain")
	if o.Contract == V1Beta1 {
		domain = inSpec
	}
	return InfraMachineView{
		Object:            o,
		Provisioned:       o.flag("status.initialization.provisioned", "status.ready"),
		ProviderID:        read[string](o, "spec.providerID"),
		FailureDomain:     domain,
		SpecFailureDomain: inSpec,
		Addresses:         read[[]clusterv1.MachineAddress](o, "status.addresses"),
		Interruptible:     read[bool](o, "status.interruptible"),
		Removed:           o.isFalseBecause(ReasonMachineRemoved),
		Failed:            o.isFalseBecause(ReasonBootstrapFailed),
	}
}

// Completion implements [View].
func (v InfraMachineView) Completion() Completion {
	return Completion{Flag: v.Provisioned, Result: v.ProviderID}
}

// Err implements [View].
func (v InfraMachineView) Err() error {
	return cmp.Or(v.Provisioned.Err(), v.ProviderID.Err(), v.FailureDomain.Err(), v.SpecFailureDomain.Err(), v.Addresses.Err(), v.Interruptible.Err())
}
