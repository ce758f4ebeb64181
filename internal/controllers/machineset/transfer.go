package machineset

import (
	"context"
	"fmt"
	"maps"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/slipwayhq/slipway/internal/machines"
	"github.com/slipwayhq/slipway/internal/machines/inplace"
	"github.com/slipwayhq/slipway/internal/reconciler"
	"github.com/slipwayhq/slipway/sdk/contract"
)

// This file is the part of the controller for in-place updates. The steps with which a Machine is transferred from one
// MachineSet to another, each one write (package inplace):
//
//	old set    has surplus Machines, has to transfer them   owner, labels and annotations of the Machine
//	           MachineDeployment counts the Machine         replicas of the new set
//	new set    Machine is counted, update not begun         infrastructure machine, bootstrap config, then the Machine
//	                                                        with the pending hook
//
// Machines are selected for a transfer in the order of deletion. However, Machines that a user or a health check
// wants to be replaced are deleted, and Machines that are being updated are only selected after the update.

// transferMachines makes another MachineSet of the same MachineDeployment the owner of Machines. act runs it, and
// [report] creates an event for it.
type transferMachines struct {
	Names []string
	To    string
}

func (a transferMachines) String() string {
	return fmt.Sprintf("transfer %s to MachineSet %s: it is updated in place", machines.NamesText(a.Names), a.To)
}

// Parts lets package reconciler transfer the Machines in parallel, each as an action of its own.
func (a transferMachines) Parts() []reconciler.Action {
	var out []reconciler.Action
	for _, name := range a.Names {
		out = append(out, transferMachines{Names: []string{name}, To: a.To})
	}
	return out
}

// counted returns the Machines that the replicas of the MachineSet include. Without a MachineDeployment these are
// all Machines.
func counted(s snapshot) machines.OwnedMachines {
	if s.Deployment == nil {
		return slices.Clone(s.Machines)
	}
	var out machines.OwnedMachines
	for _, m := range s.Machines {
		if m.Deleted || !inplace.IsAwaitingCount(s.Set, m.Machine) {
			out = append(out, m)
		}
	}
	return out
}

// staying returns the number of Machines that are not being deleted.
func staying(s snapshot) int {
	return len(slices.DeleteFunc(counted(s), func(m machines.OwnedMachine) bool { return m.Deleted }))
}

// transfersMachines reports whether the MachineSet transfers its surplus Machines.
func transfersMachines(s snapshot) bool {
	return s.Settings.InPlace && s.Deployment != nil && !isDeleting(s) && inplace.TransferTarget(s.Set) != ""
}

// transferSurplus transfers or deletes n surplus Machines. scale (scale.go) calls it.
func transferSurplus(s snapshot, n int, p *reconciler.Plan) {
	if problem := inplace.MoveProblem(s.Set, s.Target); problem != "" {
		p.WaitFor(waitForMove, "Machines cannot be transferred for an update in place: %s; waiting for the MachineDeployment to decide", problem).
			For(deploymentKind, s.Deployment.Name).ToChange("")
		return
	}
	surplus := counted(s).Surplus(n, machines.ByMovePriority(s.Set.Spec.Deletion.Order))
	deleteMachines(p, surplus.Replaced, "it is replaced, not updated in place")
	if len(surplus.Moved) > 0 {
		moveAll(s, surplus.Moved, p)
	}
	if len(surplus.Updating) > 0 {
		p.WaitFor(waitForUpdate, "Waiting for the in-place updates of %s to end", machines.NamesText(surplus.Updating)).
			ForAll("Machine", surplus.Updating).ToChange("metadata.annotations")
	}
}

// moveAll transfers Machines if the preflight checks allow Machines of the other MachineSet.
func moveAll(s snapshot, names []string, p *reconciler.Plan) {
	if blockers := s.preflight("MachineSet "+s.Target.Name, s.Target); len(blockers) > 0 {
		for _, blocker := range blockers {
			wait := p.WaitFor(waitForMove, "%s", blocker.Message).For(s.Cluster.Spec.ControlPlaneRef.Kind, s.Cluster.Spec.ControlPlaneRef.Name)
			if blocker.Invalid {
				wait.UntilUserActs()
			} else {
				wait.ToChange("spec.version and status.versions")
			}
		}
		p.RecheckIn(preflightRecheck)
		return
	}
	for part := range slices.Chunk(names, batch) {
		p.Do(transferMachines{Names: part, To: s.Target.Name})
	}
}

// dueUpdates returns the Machines whose update the MachineSet has to begin: they are annotated and counted, and no
// hook is pending. While there are surplus Machines the result is empty, because these Machines may still be
// deleted or transferred again.
func dueUpdates(s snapshot) []machines.OwnedMachine {
	if want, known := desired(s); s.Deployment == nil || known && staying(s) > want {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(s.Machines), func(m machines.OwnedMachine) bool {
		return m.Deleted || m.Stale || !inplace.AwaitsStart(s.Set, m.Machine)
	})
}

// beginUpdates begins in-place updates. Fields that follow the template without an update are applied first,
// because otherwise the last write to the Machine would conflict. [decide] calls it.
func beginUpdates(s snapshot, p *reconciler.Plan) {
	due := dueUpdates(s)
	if len(due) > 0 && !s.Settings.InPlace {
		var names []string
		for _, m := range due {
			names = append(names, m.Name)
		}
		deleteMachines(p, names, "it cannot be updated in place, since the feature gate InPlaceUpdates is disabled")
		return
	}
	synced := map[string]bool{}
	for _, a := range p.Actions {
		switch a := a.(type) {
		case machines.SyncMachine:
			synced[a.Machine] = true
		case machines.SyncClone:
			synced[a.Machine] = true
		}
	}
	state := s.State()
	for _, m := range due {
		blocker := state.UpdateBlocker(m.Machine)
		switch {
		case synced[m.Name]:
		case blocker != "":
			p.WaitFor(waitForUpdate, "In-place update of Machine %s cannot begin: %s", m.Name, blocker).For("Machine", m.Name).UntilUserActs()
			p.RecheckIn(missingRecheck) // clones are not watched
		default:
			p.Do(machines.BeginUpdate{Machine: m.Name})
		}
	}
}

// readTarget reads the MachineSet in the annotation. observe calls it.
func (c *controller) readTarget(ctx context.Context, s *snapshot) error {
	if !transfersMachines(*s) {
		return nil
	}
	target := &clusterv1.MachineSet{}
	err := c.client.Get(ctx, client.ObjectKey{Namespace: s.Set.Namespace, Name: inplace.TransferTarget(s.Set)}, target, client.UnsafeDisableDeepCopy)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("reading the target MachineSet: %w", err)
	}
	s.Target = target
	return nil
}

// transferMachines uses the Machine's resourceVersion as a precondition and a single write, so that the Machine always
// has exactly one owner. The cache may show the Machine with its old owner for a while. act calls it.
func (c *controller) transferMachines(ctx context.Context, s snapshot, a transferMachines) error {
	for _, name := range a.Names {
		m := s.Machines.Named(name)
		if m.Machine == nil {
			continue
		}
		if err := c.writer.Patch(ctx, m.Machine, func(o client.Object) { moveTo(o, s.Set, s.Target) }); err != nil {
			return err
		}
		c.pending.Deleted(s.Set.UID, name, s.Now)
	}
	return nil
}

// moveTo makes the other MachineSet the owner of a Machine. The MachineDeployment has yet to count the Machine
// there, and its update has yet to begin.
func moveTo(o client.Object, from, to *clusterv1.MachineSet) {
	refs := slices.DeleteFunc(slices.Clone(o.GetOwnerReferences()), func(ref metav1.OwnerReference) bool { return ref.UID == from.UID })
	o.SetOwnerReferences(append(refs, ownerReference(to)))
	labels, annotations := maps.Clone(o.GetLabels()), maps.Clone(o.GetAnnotations())
	if labels == nil {
		labels = map[string]string{}
	}
	if annotations == nil {
		annotations = map[string]string{}
	}
	maps.Copy(labels, to.Spec.Selector.MatchLabels)
	labels[clusterv1.MachineSetNameLabel] = contract.LabelValue(to.Name)
	annotations[clusterv1.PendingAcknowledgeMoveAnnotation], annotations[clusterv1.UpdateInProgressAnnotation] = "", ""
	o.SetLabels(labels)
	o.SetAnnotations(annotations)
}

// senders enqueues the MachineSets that transfer Machines to a MachineSet. The controller calls it when annotations of
// a MachineSet change, since a transfer waits until the target lists its source.
func senders(_ context.Context, o client.Object) []reconcile.Request {
	var out []reconcile.Request
	from := inplace.ReceiveFrom(o.(*clusterv1.MachineSet))
	for _, name := range from[:min(len(from), inplace.MaxListedNames)] {
		out = append(out, reconcile.Request{NamespacedName: client.ObjectKey{Namespace: o.GetNamespace(), Name: name}})
	}
	return out
}
