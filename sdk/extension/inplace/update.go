package inplace

import (
	"context"
	"time"

	hooksv1 "sigs.k8s.io/cluster-api/api/runtime/hooks/v1alpha1"

	"github.com/slipwayhq/slipway/sdk/extension"
)

// Progress is the progress of an update: [Done] or [Again].
type Progress struct {
	after   time.Duration
	message string
}

// Done means that the Machine is in the desired state.
func Done() Progress { return Progress{} }

// Again means that the update is in progress, and should be called again after a delay in whole seconds, at least one.
// The message explains to users what the update waits for.
func Again(after time.Duration, message string) Progress { return Progress{max(after, 1), message} }

// UpdateMachine returns a handler of the hook UpdateMachine for a function that executes the next step of the update:
//
//	func update(ctx context.Context, in hooksv1.UpdateMachineRequestObjects) (inplace.Progress, error) {
//		machine, err := inplace.Decode[examplev1.ExampleMachine](in.InfrastructureMachine)
//		if err != nil {
//			return inplace.Done(), err
//		}
//		state, err := startOrObserve(ctx, machine)
//		switch {
//		case err != nil:
//			return inplace.Done(), err // the update has failed
//		case state != running:
//			return inplace.Again(10*time.Second, "the machine is growing")
//		}
//		return inplace.Done(), nil
//	}
//
// The function is called until it returns Done. An error means that the update has failed, and is displayed at the
// Machine; the function is still called again later, because the problem may have been solved. Each call may reach
// another replica, may be repeated, or may be the first one after a restart, so the function must observe the state of
// the machine instead of remembering it. For temporary problems, such as an unreachable machine, return [Again].
func UpdateMachine(step func(ctx context.Context, desired hooksv1.UpdateMachineRequestObjects) (Progress, error)) func(
	context.Context, *hooksv1.UpdateMachineRequest, *hooksv1.UpdateMachineResponse) error {
	return func(ctx context.Context, in *hooksv1.UpdateMachineRequest, out *hooksv1.UpdateMachineResponse) error {
		progress, err := step(ctx, in.Desired)
		if err == nil && progress.after > 0 {
			extension.Hold(out, progress.after, progress.message)
		}
		return err
	}
}
