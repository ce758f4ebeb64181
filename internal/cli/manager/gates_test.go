package manager

import (
	"testing"

	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/manager"
)

// RT-02: on in `slipway up`, off in `slipway manager`, and the flag decides.
func TestEmbeddedGates(t *testing.T) {
	tests := map[string]struct{ runtimeSDK, machinePool, invalid bool }{
		"":                                  {runtimeSDK: true, machinePool: true},
		"RuntimeSDK=false":                  {machinePool: true},
		"MachinePool=false,RuntimeSDK=true": {runtimeSDK: true},
		"NoSuchGate=true":                   {invalid: true},
		"RuntimeSDK":                        {invalid: true},
	}
	for flag, want := range tests {
		gates, err := embeddedGates(flag)
		if want.invalid {
			if fault.KindOf(err) != fault.Invalid {
				t.Errorf("%q: %v", flag, err)
			}
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		if on := gates.Enabled(manager.GateRuntimeSDK); on != want.runtimeSDK {
			t.Errorf("%q: RuntimeSDK is %t", flag, on)
		}
		if on := gates.Enabled(manager.GateMachinePool); on != want.machinePool {
			t.Errorf("%q: MachinePool is %t", flag, on)
		}
	}
	gates, err := manager.NewGates()
	if err != nil {
		t.Fatal(err)
	}
	if gates.Enabled(manager.GateRuntimeSDK) {
		t.Error("RuntimeSDK is on by default in slipway manager")
	}
}
