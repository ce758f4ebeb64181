package cluster

import (
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	runtimev1 "sigs.k8s.io/cluster-api/api/runtime/v1beta2"

	"github.com/slipwayhq/slipway/internal/condition"
	"github.com/slipwayhq/slipway/internal/reconciler"
	"github.com/slipwayhq/slipway/internal/reference"
	"github.com/slipwayhq/slipway/sdk/contract"
)

// decideDeletion is the part of [decide] for a Cluster that is being deleted. It deletes the objects of the Cluster in
// stages. Within a stage everything is deleted at once. Watches on all awaited objects enqueue the Cluster. The order
// of the stages is Cluster API's: each later stage is needed to delete the objects of an earlier one.
func decideDeletion(s snapshot) reconciler.Plan {
	var p reconciler.Plan
	for order, stage := range []struct {
		reason string
		plan   func(snapshot, *reconciler.Plan)
	}{
		{clusterv1.ClusterDeletingWaitingForBeforeDeleteHookReason, awaitHook},
		{clusterv1.ClusterDeletingWaitingForWorkersDeletionReason, deleteWorkers},
		{clusterv1.ClusterDeletingWaitingForWorkersDeletionReason, awaitHidden},
		{clusterv1.ClusterDeletingWaitingForControlPlaneDeletionReason, deleteControlPlane},
		{clusterv1.ClusterDeletingWaitingForInfrastructureDeletionReason, deleteInfrastructure},
		{clusterv1.ClusterDeletingDeletionCompletedReason, deleteBinding},
	} {
		if stage.plan(s, &p); !p.Idle() {
			p.Enter(order+hookStage, stage.reason)
			return p
		}
	}
	p.Enter(deletionOver, clusterv1.ClusterDeletingDeletionCompletedReason)
	return p
}

// Numbers of stages: the first, with which the conditions compare, and the end after the last of the list above. A new
// row of the list increases deletionOver.
const (
	hookStage    = 1
	deletionOver = 7
)

// awaitHook delays the deletion until a runtime hook allows it.
func awaitHook(s snapshot, p *reconciler.Plan) {
	if _, allowed := s.Cluster.Annotations[runtimev1.OkToDeleteAnnotation]; allowed || !s.Settings.DeleteHook || !s.Cluster.Spec.Topology.IsDefined() {
		return
	}
	p.WaitFor(clusterv1.ClusterDeletingWaitingForBeforeDeleteHookReason, "Waiting for the BeforeClusterDelete hook to allow the deletion").
		For(clusterv1.ClusterKind, s.Cluster.Name).ToChange("metadata.annotations[" + runtimev1.OkToDeleteAnnotation + "]")
}

func deleteWorkers(s snapshot, p *reconciler.Plan) {
	var left pending
	for i := range s.Pools {
		left.remove(p, "MachinePool", &s.Pools[i])
	}
	for i := range s.Deployments {
		left.remove(p, "MachineDeployment", &s.Deployments[i])
	}
	for i := range s.Sets {
		left.remove(p, "MachineSet", &s.Sets[i])
	}
	for _, m := range s.machines(false) {
		left.remove(p, "Machine", m)
	}
	left.wait(p, clusterv1.ClusterDeletingWaitingForWorkersDeletionReason)
}

// awaitHidden delays the deletion of the control plane and the infrastructure while another manager may still
// reconcile Machines of the Cluster, which could not be deleted afterwards.
func awaitHidden(s snapshot, p *reconciler.Plan) {
	if len(s.Hidden) == 0 {
		return
	}
	wait := p.WaitFor(clusterv1.ClusterDeletingWaitingForWorkersDeletionReason,
		"* %s: without the label %s that the Cluster has; give it to them, or delete them", condition.Names(s.Hidden), clusterv1.WatchLabel)
	for _, hidden := range s.Hidden {
		kind, name, _ := strings.Cut(hidden, " ")
		wait.For(kind, name)
	}
	wait.UntilUserActs()
	p.RecheckIn(missingRecheck)
}

// deleteControlPlane deletes the control plane object and waits until it and its Machines are gone. Machines are
// deleted here only if there is no control plane object.
func deleteControlPlane(s snapshot, p *reconciler.Plan) {
	var left pending
	ref := s.Cluster.Spec.ControlPlaneRef
	left.link(p, s.control())
	for _, m := range s.machines(true) {
		if ref.IsDefined() {
			left.add("Machine", m.Name, condition.ForeignFinalizersText(core("Machine"), m))
			continue
		}
		left.remove(p, "Machine", m)
	}
	left.wait(p, clusterv1.ClusterDeletingWaitingForControlPlaneDeletionReason)
}

func deleteInfrastructure(s snapshot, p *reconciler.Plan) {
	var left pending
	left.link(p, s.infra())
	left.wait(p, clusterv1.ClusterDeletingWaitingForInfrastructureDeletionReason)
}

// deleteBinding deletes the Cluster's ClusterResourceSetBinding if its own controller has not done so.
func deleteBinding(s snapshot, p *reconciler.Plan) {
	if s.Binding == nil || !s.Binding.DeletionTimestamp.IsZero() {
		return
	}
	p.Do(deleteResourceSetBinding{Name: s.Binding.Name})
	p.RecheckIn(bindingRecheck)
}

// pending collects the objects that a stage waits for, grouped by kind.
type pending struct {
	kinds []string
	names map[string][]string
	// held describes, for each kind, the foreign finalizers that block a deletion.
	held map[string]string
	// unreadable are references whose objects may still exist.
	unreadable []reference.Link
}

func (w *pending) add(kind, name, held string) {
	if w.names == nil {
		w.names, w.held = map[string][]string{}, map[string]string{}
	}
	if w.held[kind] == "" { // one is enough to act on
		w.held[kind] = held
	}
	if len(w.names[kind]) == 0 {
		w.kinds = append(w.kinds, kind)
	}
	w.names[kind] = append(w.names[kind], name)
}

// core returns the GroupKind for a kind of the Cluster's API group.
func core(kind string) schema.GroupKind { return clusterv1.GroupVersion.WithKind(kind).GroupKind() }

// remove deletes an object if no other controller does, and waits for it.
func (w *pending) remove(p *reconciler.Plan, kind string, o metav1.Object) {
	if o.GetDeletionTimestamp().IsZero() && standalone(o) {
		p.Do(deleteObject{Kind: kind, Name: o.GetName()})
	}
	w.add(kind, o.GetName(), condition.ForeignFinalizersText(core(kind), o))
}

// link deletes the referenced object and waits for it.
func (w *pending) link(p *reconciler.Plan, l reference.Link) {
	switch l.Remove(p) {
	case contract.Unreadable:
		w.unreadable = append(w.unreadable, l)
	case contract.Found:
		w.add(l.Ref.Kind, l.Ref.Name, l.FinalizersText())
	}
}

func (w *pending) wait(p *reconciler.Plan, reason string) {
	var lines []string
	for _, l := range w.unreadable {
		lines = append(lines, "* "+l.Problem())
	}
	for _, kind := range w.kinds {
		names, held := w.names[kind], w.held[kind]
		if len(names) > 1 {
			kind += "s"
		}
		lines = append(lines, fmt.Sprintf("* %s: %s%s", kind, condition.Names(names), held))
	}
	if len(lines) == 0 {
		return
	}
	wait := p.WaitFor(reason, "%s", strings.Join(lines, "\n"))
	for _, kind := range w.kinds {
		for _, name := range w.names[kind] {
			wait.For(kind, name)
		}
	}
	for _, l := range w.unreadable {
		wait.For(l.Ref.Kind, l.Ref.Name)
	}
	if len(w.unreadable) > 0 {
		wait.UntilUserActs()
	} else {
		wait.ToChange("")
	}
}
