package inplace

import (
	"context"
	"time"

	hooksv1 "sigs.k8s.io/cluster-api/api/runtime/hooks/v1alpha1"

	"github.com/slipwayhq/slipway/sdk/extension"
)

// Progress is how far the update of a Machine is: [Done], or [Again].
type Progress struct {
	after   time.Duration
	message string
}

// Done says that the Machine is as it shall be.
func Done() Progress { return Progress{} }

// Again says that the update goes on, and when to call again, in whole seconds, one at least. The message says to users what
// it waits for.
func Again(after time.Duration, message string) Progress { return Progress{max(after, 1), message} }

// UpdateMachine returns a handler of the hook UpdateMachine from a function that takes the update one step further:
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
// It is called until it says that the update is done. An error says that the update has failed, which the Machine shows; the next call
// comes later all the same, since what was wrong may have been corrected. Each call
// may reach another replica, come twice, or be the first after a restart: what has been done already is observed at the
// machine, not remembered. Where something may pass, such as a machine that does not answer, say [Again].
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
