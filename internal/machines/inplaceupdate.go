package machines

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	runtimev1 "sigs.k8s.io/cluster-api/api/runtime/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/machines/clone"
	"github.com/slipwayhq/slipway/internal/machines/inplace"
	"github.com/slipwayhq/slipway/sdk/contract"
)

// BeginUpdate is the action with which the MachineSet controller begins the in-place update of a Machine that was
// transferred to it. It writes the desired state, first to the clones of the Machine (bootstrap config, infrastructure
// machine), then to the Machine, and sets the pending hook so that the Machine controller calls the extension. Until
// the last write the Machine is annotated but no hook is pending, so that an interrupted action is repeated.
type BeginUpdate struct{ Machine string }

// Independent marks actions that may run in parallel.
func (BeginUpdate) Independent() {}

func (a BeginUpdate) String() string {
	return fmt.Sprintf("begin the in-place update of Machine %s: it differs from the template", a.Machine)
}

// UpdateBlocker returns why the in-place update of a Machine cannot begin now, because of its templates or clones, or
// an empty string. The MachineSet controller calls it before it plans [BeginUpdate].
func (s OwnerState) UpdateBlocker(m *clusterv1.Machine) string {
	for _, t := range s.Definition.Templates {
		if blocker := t.Blocker(); blocker != "" {
			return blocker
		}
	}
	for _, ref := range clone.Refs(m) {
		if s.Clones.Items[clone.Key{Kind: ref.Kind, Name: ref.Name}].Presence() != contract.Found {
			return fmt.Sprintf("%s %s does not exist; delete the Machine to replace it", ref.Kind, ref.Name)
		}
	}
	return ""
}

// beginUpdate changes the clones with the field manager that created them, then the Machine. A separate field
// manager sets the annotations of the Machine, because the Machine controller removes them and an apply of the
// desired state must not restore them. [MachineWriter.Act] calls it for [BeginUpdate].
func (k MachineWriter) beginUpdate(ctx context.Context, s OwnerState, a BeginUpdate) error {
	m := s.Members.Named(a.Machine).Machine
	for _, ref := range []struct {
		of, template clusterv1.ContractVersionedObjectReference
	}{
		{m.Spec.InfrastructureRef, s.Definition.Spec.InfrastructureRef}, {m.Spec.Bootstrap.ConfigRef, s.Definition.Spec.Bootstrap.ConfigRef},
	} {
		if err := k.updateClone(ctx, s, ref.of, ref.template); err != nil {
			return err
		}
	}
	desired := s.Definition.Machine(m.Name)
	return k.Writer.Patch(ctx, m, func(o client.Object) {
		machine := o.(*clusterv1.Machine)
		machine.Spec.Version, machine.Spec.FailureDomain = desired.Spec.Version, cmp.Or(desired.Spec.FailureDomain, machine.Spec.FailureDomain)
		if !machine.Spec.Bootstrap.ConfigRef.IsDefined() {
			machine.Spec.Bootstrap = desired.Spec.Bootstrap
		}
		machine.Annotations[runtimev1.PendingHooksAnnotation] = inplace.WithHook(m)
		delete(machine.Annotations, clusterv1.PendingAcknowledgeMoveAnnotation)
	})
}

func (k MachineWriter) updateClone(ctx context.Context, s OwnerState, ref, template clusterv1.ContractVersionedObjectReference) error {
	if ref.IsDefined() != template.IsDefined() {
		return fault.New(fault.Invalid, "OtherKind", "a Machine with a bootstrap config cannot become one without, nor the reverse: delete it to replace it")
	}
	if !ref.IsDefined() {
		return nil
	}
	live := s.Clones.Items[clone.Key{Kind: ref.Kind, Name: ref.Name}]
	if live.Presence() != contract.Found {
		return fault.New(fault.Gone, "NoClone", "%s %s does not exist", ref.Kind, ref.Name)
	}
	want, err := clone.Update(live.Unstructured, clone.Options{
		Template: s.Definition.Templates.Get(template).Object, Cluster: s.Definition.Cluster, Owner: s.Definition.Owner,
		Labels: s.Definition.Labels, Annotations: s.Definition.Annotations,
	})
	if err != nil {
		return err
	}
	return k.Writer.WithManager(k.Manager).Apply(ctx, nil, want)
}

// ByMovePriority compares Machines for an owner that transfers Machines for in-place updates: Machines that do not
// work come first, Machines that are being updated last. Within the same priority the deletion order applies. The
// MachineSet controller passes it to [OwnedMachines.Surplus].
func ByMovePriority(order clusterv1.MachineSetDeletionOrder) func(a, b OwnedMachine) int {
	rank := func(m OwnedMachine) DeletionPriority {
		switch priority := PriorityOf(m); {
		case priority == priorityUpdating && isBusy(m):
			return priorityHealthy + 1
		case priority == priorityUpdating:
			return priorityUnhealthy
		default:
			return priority
		}
	}
	return func(a, b OwnedMachine) int {
		return cmp.Or(cmp.Compare(rank(a), rank(b)), byOrder(a, b, order), strings.Compare(a.Name, b.Name))
	}
}

// isBusy reports whether an extension is updating a Machine and has not reported a failure.
func isBusy(m OwnedMachine) bool {
	return inplace.StateOf(m.Machine) == inplace.Updating && !inplace.HasFailed(m.Machine)
}

// Surplus divides the surplus Machines of a MachineSet that transfers its Machines for in-place updates.
// [OwnedMachines.Surplus] returns it to the MachineSet controller.
type Surplus struct {
	// Replaced Machines are deleted, because a user requested it or an update would not help. Moved Machines can be
	// transferred. Updating Machines can be transferred after their current update.
	Replaced, Moved, Updating []string
}

// Surplus divides the first n Machines in the order of compare. Machines that are already being deleted count
// toward n. The MachineSet controller calls it when it has to transfer surplus Machines.
func (ms OwnedMachines) Surplus(n int, compare func(a, b OwnedMachine) int) Surplus {
	var out Surplus
	sorted := slices.SortedFunc(slices.Values(ms), compare)
	for _, m := range sorted[:min(n, len(sorted))] {
		switch priority := PriorityOf(m); {
		case priority == Deleting:
		case priority == priorityUpdating && isBusy(m):
			out.Updating = append(out.Updating, m.Name)
		case priority == priorityHealthy, priority == priorityUpdating && inplace.StateOf(m.Machine) != inplace.Updating:
			out.Moved = append(out.Moved, m.Name)
		default:
			out.Replaced = append(out.Replaced, m.Name)
		}
	}
	slices.Sort(out.Replaced)
	slices.Sort(out.Moved)
	slices.Sort(out.Updating)
	return out
}
