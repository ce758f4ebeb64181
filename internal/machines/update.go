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
	"github.com/slipwayhq/slipway/internal/inplace"
	"github.com/slipwayhq/slipway/internal/machines/clone"
	"github.com/slipwayhq/slipway/sdk/contract"
)

// BeginUpdate writes what a Machine that is marked shall be, and hands it to the Machine controller, which has an extension make it
// that: first its clones, then the Machine. Until the last write the Machine is marked and no update is pending, so that an action
// that was interrupted is repeated.
type BeginUpdate struct{ Machine string }

// Independent implements loop.Independent.
func (BeginUpdate) Independent() {}

// String says what the action does, and why.
func (a BeginUpdate) String() string {
	return fmt.Sprintf("begin the in-place update of Machine %s: it differs from the template", a.Machine)
}

// UpdateBlocker says why the in-place update of a Machine cannot begin now, by its clones; empty: it can.
func (s State) UpdateBlocker(m *clusterv1.Machine) string {
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

// beginUpdate changes the clones under the field manager that created them, and the Machine last. The annotations of the Machine are
// of another field manager than its desired state: the Machine controller removes them, and they must not come back.
func (k Keeper) beginUpdate(ctx context.Context, s State, a BeginUpdate) error {
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

func (k Keeper) updateClone(ctx context.Context, s State, ref, template clusterv1.ContractVersionedObjectReference) error {
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
	want, err := clone.Update(live.Unstructured, clone.Request{
		Template: s.Definition.Templates.Of(template).Object, Cluster: s.Definition.Cluster, Owner: s.Definition.Owner,
		Labels: s.Definition.Labels, Annotations: s.Definition.Annotations,
	})
	if err != nil {
		return err
	}
	return k.Writer.Named(k.Manager).Apply(ctx, nil, want)
}

// ByMovePriority compares Machines in the order in which an owner gives them up that hands over what can be updated in place: those
// that do no work first, and what is being updated last. Within that the order is that of deletions.
func ByMovePriority(order clusterv1.MachineSetDeletionOrder) func(a, b Member) int {
	rank := func(m Member) DeletionPriority {
		switch priority := PriorityOf(m); {
		case priority == Updating && isBusy(m):
			return Healthy + 1
		case priority == Updating:
			return Unhealthy
		default:
			return priority
		}
	}
	return func(a, b Member) int {
		return cmp.Or(cmp.Compare(rank(a), rank(b)), byOrder(a, b, order), strings.Compare(a.Name, b.Name))
	}
}

// isBusy reports whether an extension is updating a Machine, as far as is known with success.
func isBusy(m Member) bool {
	return inplace.StateOf(m.Machine) == inplace.Updating && !inplace.HasFailed(m.Machine)
}

// Surplus is what an owner does with Machines that it has too many.
type Surplus struct {
	// Replaced are deleted: a person asks for that, or an update would not help. Moved can be handed over; Updating have to be waited
	// for first.
	Replaced, Moved, Updating []string
}

// Surplus divides n Machines that the owner has too many, the first by compare; those that are being deleted count.
func (ms Members) Surplus(n int, compare func(a, b Member) int) Surplus {
	var out Surplus
	sorted := slices.SortedFunc(slices.Values(ms), compare)
	for _, m := range sorted[:min(n, len(sorted))] {
		switch priority := PriorityOf(m); {
		case priority == Deleting:
		case priority == Updating && isBusy(m):
			out.Updating = append(out.Updating, m.Name)
		case priority == Healthy, priority == Updating && inplace.StateOf(m.Machine) != inplace.Updating:
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
