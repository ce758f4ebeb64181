// Package inplace helps with the hooks of in-place updates: it decodes the objects of a request as they are and as they shall
// be, and makes the patches that say which of the changes the extension makes.
//
//	updates := inplace.Updater{Rules: []inplace.Rule{
//		inplace.Fields("cluster.x-k8s.io/v1beta2", "Machine", "version"),
//		inplace.For("infrastructure.example.org/v1", "ExampleMachine", grow),
//	}}
//	extension.OnErr("can-update-machine", hooksv1.CanUpdateMachine, updates.CanUpdateMachine)
//	extension.OnErr("can-update-set", hooksv1.CanUpdateMachineSet, updates.CanUpdateMachineSet)
//	extension.OnErr("update", hooksv1.UpdateMachine, inplace.UpdateMachine(update))
//
//	// grow takes over more memory, never less.
//	func grow(ctx context.Context, current, desired *examplev1.ExampleMachine) error {
//		current.Spec.Memory = max(current.Spec.Memory, desired.Spec.Memory)
//		return nil
//	}
//
// Does: CanUpdateMachine and CanUpdateMachineSet ([Updater]), UpdateMachine in steps ([UpdateMachine]), decoding of the objects
// in requests ([Decode]).
//
// Never: takes over what no rule takes over, or anything outside of the spec. What no extension takes over leads to new
// machines.
//
// Read first: [Updater], [Rule], [UpdateMachine].
package inplace
