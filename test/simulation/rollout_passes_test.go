package simulation

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/slipwayhq/slipway/internal/condition"
	"github.com/slipwayhq/slipway/internal/controllers/machinedeployment"
	"github.com/slipwayhq/slipway/internal/controllers/machineset"
	"github.com/slipwayhq/slipway/internal/kube"
	"github.com/slipwayhq/slipway/internal/machines"
	"github.com/slipwayhq/slipway/internal/machines/clone"
	"github.com/slipwayhq/slipway/internal/reconciler"
	"github.com/slipwayhq/slipway/internal/reconciler/ownership"
	"github.com/slipwayhq/slipway/internal/rollout"
)

func (w *rolled) deploymentPass() {
	delete(w.awake, "")
	s := machinedeployment.Snapshot{Now: w.at, Deployment: w.d, Cluster: w.cluster, Machines: map[string][]clusterv1.Machine{},
		Templates: clone.Templates{{Ref: w.d.Spec.Template.Spec.InfrastructureRef, Object: w.template()}}}
	for _, set := range w.sets {
		s.Sets = append(s.Sets, *set)
		selector := labels.SelectorFromSet(set.Spec.Selector.MatchLabels)
		for _, m := range w.machines {
			by := ownership.ControllerOf(m, set.UID)
			if by == ownership.ThisController || by == ownership.NoController && selector.Matches(labels.Set(m.Labels)) {
				s.Machines[set.Name] = append(s.Machines[set.Name], *m)
			}
		}
	}
	p := machinedeployment.Decide(s)
	for _, action := range p.Actions {
		w.say("deployment: %s", action)
		switch a := action.(type) {
		case machinedeployment.Adopt:
			w.change(a.Set, func(set *clusterv1.MachineSet) {
				set.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(w.d, clusterv1.GroupVersion.WithKind("MachineDeployment"))}
			})
		case machinedeployment.CreateSet:
			w.add(a.Desired(s))
		case machinedeployment.SyncSet:
			w.change(a.Name, func(set *clusterv1.MachineSet) {
				want := a.Desired(s)
				set.Labels, set.Annotations, set.Spec, set.OwnerReferences = want.Labels, want.Annotations, want.Spec, want.OwnerReferences
			})
		case machinedeployment.DeleteSet:
			w.sets = slices.DeleteFunc(w.sets, func(set *clusterv1.MachineSet) bool { return set.Name == a.Name })
		case machinedeployment.RecordRevision:
			w.d.Annotations = map[string]string{clusterv1.RevisionAnnotation: fmt.Sprint(a.Revision)}
			w.awake[""] = true
		default:
			w.t.Fatalf("unexpected: %s", action)
		}
	}
	w.d.Status = machinedeployment.Report(s, p, reconciler.Outcome{Done: p.Actions}).Status.(clusterv1.MachineDeploymentStatus)
}

func (w *rolled) add(set *clusterv1.MachineSet) {
	w.made++
	w.at = w.at.Add(time.Second)
	set.UID, set.Generation, set.CreationTimestamp = types.UID(fmt.Sprintf("uid-%d", w.made)), 1, metav1.NewTime(w.at)
	set.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: kube.ManagerPrefix + machinedeployment.Name,
		Operation: metav1.ManagedFieldsOperationApply, FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1("{}")}}
	w.sets = append(w.sets, set)
	slices.SortFunc(w.sets, func(a, b *clusterv1.MachineSet) int { return strings.Compare(a.Name, b.Name) })
	w.awake[set.Name], w.awake[""] = true, true
}

// change changes a MachineSet, which wakes both controllers.
func (w *rolled) change(name string, by func(*clusterv1.MachineSet)) {
	for _, set := range w.sets {
		if set.Name == name {
			before := set.Spec.DeepCopy()
			by(set)
			if !reflect.DeepEqual(*before, set.Spec) {
				set.Generation++
			}
			w.awake[name], w.awake[""] = true, true
		}
	}
}

func (w *rolled) setPass(set *clusterv1.MachineSet) {
	delete(w.awake, set.Name)
	s := machineset.Snapshot{Now: w.at, Set: set, Cluster: w.cluster, Verified: true, Workload: ownership.Workload{NodesRead: true},
		Infra: clone.Template{Ref: set.Spec.Template.Spec.InfrastructureRef, Object: w.template()}}
	if ownership.ControllerOf(set, w.d.UID) == ownership.ThisController {
		s.Deployment = w.d
	}
	for i := range 20 {
		s.Random = append(s.Random, fmt.Sprintf("%05d", w.made+i+1))
	}
	for _, m := range w.machines {
		switch by := ownership.ControllerOf(m, set.UID); {
		case by == ownership.ThisController:
			s.Machines = append(s.Machines, machines.OwnedMachine{Machine: m, Deleted: !m.DeletionTimestamp.IsZero()})
		case by == ownership.NoController && labels.SelectorFromSet(set.Spec.Selector.MatchLabels).Matches(labels.Set(m.Labels)):
			s.Others = append(s.Others, m)
		}
	}
	p := machineset.Decide(s)
	if len(p.Reads) > 0 {
		s.Clones = &clone.Clones{}
		p = machineset.Decide(s)
	}
	for _, action := range p.Actions {
		w.setAct(s, action)
	}
	w.judge(s)
	status := machineset.Report(s, p, reconciler.Outcome{Done: p.Actions}).Status.(clusterv1.MachineSetStatus)
	if !reflect.DeepEqual(status, set.Status) {
		set.Status, w.awake[""] = status, true
	}
}

// judge says for the Machine controller whether the Machines are up to date.
func (w *rolled) judge(s machineset.Snapshot) {
	if s.Deployment == nil {
		return
	}
	for _, m := range s.Machines {
		verdict := rollout.UpToDateCondition(m.Machine, s.Set, s.Deployment, w.at)
		c := condition.Set(m.Status.Conditions).Get(clusterv1.MachineUpToDateCondition)
		if m.Deleted || c != nil && string(verdict.Status)+verdict.Message == string(c.Status)+c.Message {
			continue
		}
		judgeMachine(m.Machine, machines.SetConditions{UpToDate: verdict}, w.at)
		w.awake[s.Set.Name] = true
	}
}

func (w *rolled) setAct(s machineset.Snapshot, action reconciler.Action) {
	named := func(name string) *clusterv1.Machine {
		return w.machines[slices.IndexFunc(w.machines, func(m *clusterv1.Machine) bool { return m.Name == name })]
	}
	if _, quiet := action.(machines.SetConditions); !quiet {
		w.say("%s: %s", s.Set.Name, action)
	}
	switch a := action.(type) {
	case machineset.Adopt:
		named(a.Machine).OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(s.Set, clusterv1.GroupVersion.WithKind("MachineSet"))}
	case machines.SyncMachine:
		m, want := named(a.Machine), s.State().InPlace(named(a.Machine))
		m.Labels, m.Annotations, m.Spec, m.Finalizers = want.Labels, want.Annotations, want.Spec, want.Finalizers
	case machines.SetConditions:
		judgeMachine(named(a.Machine), a, w.at)
	case machines.CreateMachines:
		for _, name := range a.Names {
			m := s.State().Definition.Machine(name)
			w.made++
			w.at = w.at.Add(time.Second)
			m.UID, m.CreationTimestamp = types.UID(fmt.Sprintf("uid-%d", w.made)), metav1.NewTime(w.at)
			w.machines = append(w.machines, m)
		}
		slices.SortFunc(w.machines, func(a, b *clusterv1.Machine) int { return strings.Compare(a.Name, b.Name) })
		if n := int32(len(w.machines)); n > w.ceiling {
			w.t.Fatalf("DP-06: %d Machines, at most %d\n%s", n, w.ceiling, w.text())
		}
	case machines.DeleteMachines:
		for _, name := range a.Names {
			w.delete(named(name))
		}
	default:
		w.t.Fatalf("unexpected: %s", action)
	}
	w.awake[s.Set.Name] = true
}

func (w *rolled) delete(m *clusterv1.Machine) {
	was := available(m)
	w.leave(m)
	left := int32(0)
	for _, other := range w.machines {
		if available(other) {
			left++
		}
	}
	if was && left < w.floor && !w.frail && !w.limits().OnDelete {
		w.t.Fatalf("DP-06: %d available Machines after the deletion of %s, at least %d required\n%s", left, m.Name, w.floor, w.text())
	}
}
