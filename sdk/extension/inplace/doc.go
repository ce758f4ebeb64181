// Package inplace supports handlers of the in-place update hooks. It decodes the current and desired objects of a
// request, and creates the patches that declare which changes the extension can make.
//
//	updates := inplace.Updater{Rules: []inplace.Rule{
//		inplace.Fields("cluster.x-k8s.io/v1beta2", "Machine", "version"),
//		inplace.For("infrastructure.example.org/v1", "ExampleMachine", grow),
//	}}
//	extension.OnErr("can-update-machine", hooksv1.CanUpdateMachine, updates.CanUpdateMachine)
//	extension.OnErr("can-update-set", hooksv1.CanUpdateMachineSet, updates.CanUpdateMachineSet)
//	extension.OnErr("update", hooksv1.UpdateMachine, inplace.UpdateMachine(update))
//
//	// grow can increase the memory, but not decrease it.
//	func grow(ctx context.Context, current, desired *examplev1.ExampleMachine) error {
//		current.Spec.Memory = max(current.Spec.Memory, desired.Spec.Memory)
//		return nil
//	}
//
// [Updater] handles CanUpdateMachine and CanUpdateMachineSet, [UpdateMachine] handles UpdateMachine in steps, and
// [Decode] decodes objects of requests. Only changes of the spec that match a rule are covered. Changes that no
// extension covers require new Machines.
package inplace
