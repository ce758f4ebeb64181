package contract

import (
	"cmp"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// InfraMachineView is an infrastructure machine as the contract sees it (rows IM-*).
type InfraMachineView struct {
	Object
	// Provisioned is true once the machine's infrastructure is there.
	Provisioned Field[bool]
	// ProviderID equals spec.providerID of the Node.
	ProviderID Field[string]
	// FailureDomain the machine was placed in: from status; from spec in contract v1beta1.
	FailureDomain Field[string]
	// SpecFailureDomain is the deprecated spec.failureDomain of either contract: where a provider sets it, the Machine's spec
	// follows it.
	SpecFailureDomain Field[string]
	// Addresses of the machine.
	Addresses Field[[]clusterv1.MachineAddress]
	// Interruptible machines may be taken away by their provider at any time.
	Interruptible Field[bool]
	// Removed is true where a condition is False with the reason [ReasonMachineRemoved].
	Removed bool
	// Failed is true where a condition is False with the reason [ReasonBootstrapFailed].
	Failed bool
}

// ReasonBootstrapFailed of a condition that is False says that the bootstrap data ended without success, and is not run again: the
// machine never becomes a node. The contract has no field for this; LocalMachine says it in the condition BootstrapExecSucceeded, and
// other providers may say it in one of theirs.
const ReasonBootstrapFailed = "BootstrapFailed"

// ReasonMachineRemoved of a condition that is False says that the machine is gone for good, with what ran on it: nothing that runs
// there has to be waited for. The contract has no field for this; LocalMachine says it in the condition MachineProvisioned, and
// other providers may say it in one of theirs.
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
