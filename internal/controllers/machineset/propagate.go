package machineset

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/slipwayhq/slipway/internal/clone"
	"github.com/slipwayhq/slipway/internal/condition"
	"github.com/slipwayhq/slipway/internal/kube"
	"github.com/slipwayhq/slipway/internal/loop"
	"github.com/slipwayhq/slipway/internal/machines"
	"github.com/slipwayhq/slipway/internal/rollout"
)

// The field managers of MS-09.
const (
	manager         = "capi-machineset"
	metadataManager = "capi-machineset-metadata"
)

// asksClones reports whether bootstrap configs and infrastructure machines have to be read: their number makes that
// costly, and what is wanted of them changes only with what is wanted of the Machines. So they are read when a Machine
// is not what it should be, and once for each generation of the set.
func asksClones(s Snapshot) bool {
	if s.Clones != nil {
		return false
	}
	if !s.Verified && len(s.Machines) > 0 {
		return true
	}
	want := newMachine(s, "")
	return slices.ContainsFunc(s.Machines, func(m Member) bool { return !m.Stale && needsSync(s, m, want) })
}

// propagation is what has to be done for Machines and clones to be what the template says (MS-08): clones before their
// Machine, which tells what is not wanted any more; orphaned clones last.
func propagation(s Snapshot) []loop.Action {
	var out []loop.Action
	for _, m := range s.Machines {
		if m.Deleted || m.Stale || s.Clones == nil {
			continue
		}
		for _, ref := range refs(m.Machine) {
			key := cloneKey{ref.Kind, ref.Name}
			o, ok := s.Clones.Items[key]
			if ok && !s.Clones.Stale[key] && o.GetDeletionTimestamp().IsZero() && !metadata(s, m.Machine).Kept(o.Unstructured) {
				out = append(out, SyncClone{Kind: ref.Kind, Name: ref.Name, Machine: m.Name})
			}
		}
	}
	want := newMachine(s, "")
	for _, m := range s.Machines {
		if m.Stale || !needsSync(s, m, want) {
			continue
		}
		if m.Deleted {
			out = append(out, SyncTimeouts{Machine: m.Name})
		} else {
			out = append(out, SyncMachine{Machine: m.Name})
		}
	}
	if s.Clones != nil {
		for _, o := range s.Clones.Orphans {
			out = append(out, DeleteOrphan{Kind: o.GetKind(), Name: o.GetName()})
		}
	}
	return out
}

// needsSync reports whether a Machine is not what the template says; fresh is what a new one would be. Of one that is
// being deleted only the timeouts of the deletion matter (MS-08).
func needsSync(s Snapshot, m Member, fresh *clusterv1.Machine) bool {
	if m.Deleted {
		return !m.DeletionTimestamp.IsZero() && !machines.SameDeletion(m.Spec.Deletion, fresh.Spec.Deletion)
	}
	if !machines.Includes(m.Machine, fresh) {
		return true
	}
	if s.Verified {
		return false
	}
	covered, err := machines.Covered(m.Machine, kept(s, m.Machine), manager)
	return err != nil || !covered
}

// metadata is what the set says of the metadata of a Machine's clones. What it said before and does not say now is what
// it still owns of the Machine, which follows after them.
func metadata(s Snapshot, m *clusterv1.Machine) clone.Metadata {
	out := clone.Metadata{Labels: machineLabels(s), Annotations: machineAnnotations(s)}
	owned := kube.OwnedMetadata(m, manager)
	without := func(keys []string, wanted map[string]string) []string {
		return slices.DeleteFunc(keys, func(key string) bool { _, ok := wanted[key]; return ok })
	}
	out.OldLabels, out.OldAnnotations = without(owned.Labels, out.Labels), without(owned.Annotations, out.Annotations)
	return out
}

// refs are the references of a Machine to its clones.
func refs(m *clusterv1.Machine) []clusterv1.ContractVersionedObjectReference {
	var out []clusterv1.ContractVersionedObjectReference
	for _, ref := range []clusterv1.ContractVersionedObjectReference{m.Spec.Bootstrap.ConfigRef, m.Spec.InfrastructureRef} {
		if ref.IsDefined() {
			out = append(out, ref)
		}
	}
	return out
}

// judgeMachines sets the conditions that owners set on Machines: UpToDate and OwnerRemediated.
func judgeMachines(s Snapshot, p *loop.Plan) {
	remediation := verdicts(s)
	for _, m := range s.Machines {
		if m.Deleted || m.Stale {
			continue
		}
		j := Judge{Machine: m.Name, UpToDate: upToDate(s, m.Machine), Remediated: remediation[m.Name]}
		have := of(m.Machine, clusterv1.MachineOwnerRemediatedCondition)
		withdrawn := j.Remediated == condition.Absent() && ours(have)
		if differs(of(m.Machine, clusterv1.MachineUpToDateCondition), j.UpToDate) || differs(have, j.Remediated) || withdrawn {
			p.Do(j)
		}
	}
	if s.Clones != nil && slices.ContainsFunc(s.Machines, func(m Member) bool { return undecided(s, m) }) {
		p.RecheckIn(missingRecheck) // clones are not watched
	}
}

// differs reports whether a condition has to be written to say the verdict.
func differs(have *metav1.Condition, want condition.Verdict) bool {
	if want == condition.Absent() {
		return false
	}
	return have == nil || have.Status != want.Status || have.Reason != want.Reason || have.Message != want.Message
}

// upToDate judges a Machine of a standalone set by what it was made from (MA-24); while that is not known, what was said
// stays. Absent: nothing was said yet, or the Machine is of a MachineDeployment: those the Machine controller judges, in its
// own write (docs/divergences.md).
func upToDate(s Snapshot, m *clusterv1.Machine) condition.Verdict {
	if s.Deployment != nil {
		return condition.Absent()
	}
	from, known := originOf(s, m)
	if !known {
		return condition.Mirror(m.Status.Conditions, clusterv1.MachineUpToDateCondition, condition.Absent())
	}
	return rollout.Verdict(m, rollout.Differences(from.template, s.Set.Spec.Template), from.unknown)
}

func labelsOf(m *clusterv1.Machine) labels.Set { return m.Labels }
