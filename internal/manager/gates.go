package manager

import (
	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/providerset"
)

// checkGates rejects feature gates that have no effect or contradict each other, before [Run] connects to the
// management cluster. Without the core provider, InPlaceUpdates does not need RuntimeSDK, because the manager with the
// core provider discovers the extensions.
func (c Config) checkGates() error {
	if c.Gates.Enabled(providerset.GateInPlaceUpdates) && !c.Gates.Enabled(providerset.GateRuntimeSDK) && c.Policy.Runs(providerset.Core) {
		return fault.New(fault.Invalid, "GatesContradict",
			"feature gate %s needs %s, by which extensions update Machines: enable the second, or disable the first", providerset.GateInPlaceUpdates, providerset.GateRuntimeSDK)
	}
	if c.Gates.Enabled(providerset.GateReconcilerRateLimiting) && !c.Gates.Enabled(providerset.GatePriorityQueue) {
		return fault.New(fault.Invalid, "GatesContradict",
			"feature gate %s needs %s: enable the second, or disable the first", providerset.GateReconcilerRateLimiting, providerset.GatePriorityQueue)
	}
	return nil
}
