package machines

import (
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/slipwayhq/slipway/internal/condition"
	"github.com/slipwayhq/slipway/internal/machines/clone"
	"github.com/slipwayhq/slipway/internal/reconciler"
	"github.com/slipwayhq/slipway/internal/reconciler/ownership"
)

// OwnerState contains the current and desired Machines of an owner. The MachineSet and KubeadmControlPlane controllers
// create it from their snapshot in each reconciliation, to plan the actions of this package ([OwnerState.Propagation])
// and to run them ([MachineWriter.Act]).
type OwnerState struct {
	Now        time.Time
	Definition Definition
	Members    OwnedMachines
	// Clones are the clones of the Machines, or nil if they were not read.
	Clones *clone.Clones
	// Verified is set if all Machines and clones were completely compared for this generation of the owner and were
	// up to date.
	Verified bool
	// ByOrigin is set if the owner computes UpToDate from the templates that a Machine was created from. Otherwise
	// another writer sets the condition.
	ByOrigin bool
	// Manager is the owner's field manager.
	Manager string
}

// NeedsClones reports whether the clones have to be read. There are many clones, and their desired state changes only
// with the desired state of the Machines. They are therefore read if a Machine differs, and once for each generation of
// the owner. The MachineSet controller calls it in each reconciliation.
func (s OwnerState) NeedsClones() bool {
	if s.Clones != nil {
		return false
	}
	if !s.Verified && len(s.Members) > 0 {
		return true
	}
	desired := s.Definition.Machine("")
	return slices.ContainsFunc(s.Members, func(m OwnedMachine) bool { return !m.Stale && s.needsSync(m, desired) })
}

// Propagation returns the actions that bring Machines and clones in line with their definition in place. Clones
// come before their Machine, which records the keys that are old; orphans come last.
func (s OwnerState) Propagation() []reconciler.Action {
	var out []reconciler.Action
	for _, m := range s.Members {
		if m.Deleted || m.Stale || s.Clones == nil {
			continue
		}
		for _, ref := range clone.Refs(m.Machine) {
			if s.Clones.Needs(clone.Key{Kind: ref.Kind, Name: ref.Name}, s.metadata(m.Machine)) {
				out = append(out, SyncClone{Kind: ref.Kind, Name: ref.Name, Machine: m.Name})
			}
		}
	}
	desired := s.Definition.Machine("")
	for _, m := range s.Members {
		switch {
		case m.Stale || !s.needsSync(m, desired):
		case m.Deleted:
			out = append(out, syncTimeouts{Machine: m.Name})
		default:
			out = append(out, SyncMachine{Machine: m.Name})
		}
	}
	if s.Clones != nil {
		for _, o := range s.Clones.Orphans {
			out = append(out, deleteOrphan{Kind: o.GetKind(), Name: o.GetName()})
		}
	}
	return out
}

// needsSync reports whether a Machine differs from its desired state. While a Machine is being deleted, only its
// deletion timeouts matter.
func (s OwnerState) needsSync(m OwnedMachine, desired *clusterv1.Machine) bool {
	if m.Deleted {
		return !m.DeletionTimestamp.IsZero() && !SameDeletion(m.Spec.Deletion, desired.Spec.Deletion)
	}
	if !includes(m.Machine, desired) || ownership.Outdated(m.Machine, s.Definition.Owner) {
		return true
	}
	if s.Verified {
		return false
	}
	covered, err := covered(m.Machine, s.InPlace(m.Machine), s.Manager)
	return err != nil || !covered
}

// InPlace returns a Machine with the fields of the definition that are updated in place. [MachineWriter.Act] writes it
// for [SyncMachine].
func (s OwnerState) InPlace(m *clusterv1.Machine) *clusterv1.Machine {
	fresh := s.Definition.Machine(m.Name)
	for _, key := range s.Definition.KeptAnnotations {
		if value, has := m.Annotations[key]; has {
			fresh.Annotations = merged(fresh.Annotations, map[string]string{key: value})
		}
	}
	return InPlace(fresh, m)
}

func (s OwnerState) metadata(m *clusterv1.Machine) clone.Metadata {
	return clone.MetadataFor(m, s.Manager, s.Definition.Labels, s.Definition.Annotations)
}

// differs reports whether a condition has to be written to match the desired result. An absent result requires no
// write. [newSetConditions] and [OwnerState.IsUpToDate] call it.
func differs(current *metav1.Condition, desired condition.Result) bool {
	if desired == condition.Absent() {
		return false
	}
	return current == nil || current.Status != desired.Status || current.Reason != desired.Reason || current.Message != desired.Message
}
