package world

import (
	"testing"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	hooksv1 "sigs.k8s.io/cluster-api/api/runtime/hooks/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/hook"
)

// TestUpdateMachineIsNotCalled: a plan changes no machine. That an update in place ends at once is assumed; whether one is possible is not.
func TestUpdateMachineIsNotCalled(t *testing.T) {
	e := withoutRegistry(t)
	done := &hooksv1.UpdateMachineResponse{}
	done.RetryAfterSeconds = 7
	if err := e.Call(t.Context(), &clusterv1.Machine{}, "h.x", hook.Invocation{Request: &hooksv1.UpdateMachineRequest{}, Response: done}); err != nil {
		t.Fatal(err)
	}
	if done.Status != hooksv1.ResponseStatusSuccess || done.RetryAfterSeconds != 0 {
		t.Errorf("got %+v", done)
	}
	err := e.Call(t.Context(), &clusterv1.Machine{}, "h.x", hook.Invocation{Request: &hooksv1.CanUpdateMachineRequest{}, Response: &hooksv1.CanUpdateMachineResponse{}})
	if f := fault.As(err); f == nil || f.Reason != "ExtensionNotCalled" || len(e.Unanswered()) != 1 {
		t.Errorf("got %v, %v", err, e.Unanswered())
	}
}

// withoutRegistry are extensions of a world without a registry.
func withoutRegistry(t *testing.T) *Extensions {
	t.Helper()
	return &Extensions{recorded: map[string]bool{}, failed: map[string]error{}, unanswered: map[extensionCall]map[client.ObjectKey]bool{}}
}
