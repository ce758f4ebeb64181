package machinedeployment

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/slipwayhq/slipway/internal/kube"
	"github.com/slipwayhq/slipway/internal/machines/clone"
	"github.com/slipwayhq/slipway/internal/reconciler"
	"github.com/slipwayhq/slipway/sdk/contract"
)

func at(minute int) time.Time { return time.Date(2026, 11, 1, 12, minute, 0, 0, time.UTC) }

// now is the time of every snapshot.
func now() time.Time { return at(30) }

func reference(kind, name string) clusterv1.ContractVersionedObjectReference {
	return clusterv1.ContractVersionedObjectReference{APIGroup: "x", Kind: kind, Name: name}
}

// newDeployment has three replicas, is of cluster c, and was observed.
func newDeployment() *clusterv1.MachineDeployment {
	selected := map[string]string{clusterv1.ClusterNameLabel: "c", clusterv1.MachineDeploymentNameLabel: "md"}
	return &clusterv1.MachineDeployment{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "ns", Name: "md", UID: "md-uid", Generation: 7, CreationTimestamp: metav1.NewTime(at(0)),
			Labels:          map[string]string{clusterv1.ClusterNameLabel: "c"},
			Annotations:     map[string]string{"team": "a"},
			Finalizers:      []string{clusterv1.MachineDeploymentFinalizer},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: clusterv1.GroupVersion.String(), Kind: "Cluster", Name: "c", UID: "c-uid"}},
		},
		Spec: clusterv1.MachineDeploymentSpec{
			ClusterName: "c", Replicas: new(int32(3)), Selector: metav1.LabelSelector{MatchLabels: selected},
			Template: clusterv1.MachineTemplateSpec{
				ObjectMeta: clusterv1.ObjectMeta{Labels: selected},
				Spec: clusterv1.MachineSpec{
					ClusterName: "c", Version: "v1.36.3", InfrastructureRef: reference("HostTemplate", "i"),
					Bootstrap: clusterv1.Bootstrap{ConfigRef: reference("ConfigTemplate", "b")},
				},
			},
		},
		Status: clusterv1.MachineDeploymentStatus{ObservedGeneration: 7},
	}
}

func newCluster() *clusterv1.Cluster {
	return &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "c", UID: "c-uid"}}
}

// fresh is a deployment without anything; its templates exist and belong to the Cluster.
func fresh(changes ...func(*snapshot)) snapshot {
	s := snapshot{Now: now(), Deployment: newDeployment(), Cluster: newCluster(), Machines: map[string][]clusterv1.Machine{}}
	for _, ref := range references(s.Deployment) {
		u := &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"name": ref.Name}}}
		u.SetOwnerReferences(s.Deployment.OwnerReferences)
		s.Templates = append(s.Templates, clone.Template{Ref: ref, Object: contract.Object{Unstructured: u}})
	}
	for _, change := range changes {
		change(&s)
	}
	return s
}

// settled is a deployment whose rollout of revision 1 is complete: MachineSet md-1 with three available Machines.
func settled(changes ...func(*snapshot)) snapshot {
	s := fresh()
	withSet(&s, setPlan{name: "md-1", replicas: 3, revision: 1, current: true}, 3)
	s.Deployment.Annotations[clusterv1.RevisionAnnotation] = "1"
	for _, change := range changes {
		change(&s)
	}
	return s
}

// withSet adds a MachineSet as this controller makes it from the deployment of now, with available Machines.
func withSet(s *snapshot, p setPlan, machines int) {
	set := clusterv1.MachineSet{}
	u := desiredObject(*s, p)
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, &set); err != nil {
		panic(err)
	}
	set.UID, set.Generation, set.CreationTimestamp = types.UID(p.name+"-uid"), 1, metav1.NewTime(at(int(p.revision)))
	set.Status = clusterv1.MachineSetStatus{ObservedGeneration: 1, Replicas: new(int32(machines))}
	set.ManagedFields = []metav1.ManagedFieldsEntry{{
		Manager: kube.ManagerPrefix + Name, Operation: metav1.ManagedFieldsOperationApply, APIVersion: clusterv1.GroupVersion.String(), FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1("{}"),
	}}
	s.Sets = append(s.Sets, set)
	for n := range machines {
		s.Machines[p.name] = append(s.Machines[p.name], machine(&set, fmt.Sprintf("%s-%d", p.name, n)))
	}
}

// machine is an available Machine of a MachineSet.
func machine(set *clusterv1.MachineSet, name string) clusterv1.Machine {
	m := clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{
		Namespace: "ns", Name: name, Labels: merged(set.Spec.Template.Labels, map[string]string{clusterv1.MachineSetNameLabel: set.Name}),
		OwnerReferences:   []metav1.OwnerReference{*metav1.NewControllerRef(set, clusterv1.GroupVersion.WithKind("MachineSet"))},
		CreationTimestamp: set.CreationTimestamp,
	}, Spec: set.Spec.Template.Spec}
	m.Spec.ProviderID = "x://" + name
	m.Status.NodeRef = clusterv1.MachineNodeReference{Name: name}
	m.Status.Conditions = []metav1.Condition{
		is(clusterv1.MachineReadyCondition, "True", ""), is(clusterv1.MachineAvailableCondition, "True", ""),
		is(clusterv1.MachineUpToDateCondition, "True", ""), is(clusterv1.MachineNodeHealthyCondition, "True", ""),
	}
	return m
}

func is(conditionType string, status metav1.ConditionStatus, message string) metav1.Condition {
	return metav1.Condition{Type: conditionType, Status: status, Reason: "Because", Message: message}
}

// turn changes one Machine of a snapshot.
func turn(s *snapshot, set string, n int, conditions ...metav1.Condition) {
	m := &s.Machines[set][n]
	for _, c := range conditions {
		for i := range m.Status.Conditions {
			if m.Status.Conditions[i].Type == c.Type {
				m.Status.Conditions[i] = c
			}
		}
	}
}

// upgrade gives the deployment a template that needs new Machines.
func upgrade(s *snapshot) { s.Deployment.Spec.Template.Spec.Version = "v1.36.4" }

// restored takes away what a backup does not keep.
func restored(s *snapshot) {
	s.Deployment.Finalizers, s.Deployment.Status = nil, clusterv1.MachineDeploymentStatus{}
	for i := range s.Sets {
		set := &s.Sets[i]
		set.OwnerReferences, set.Finalizers, set.Status = nil, nil, clusterv1.MachineSetStatus{}
		for j := range s.Machines[set.Name] {
			m := &s.Machines[set.Name][j]
			m.OwnerReferences, m.Status = nil, clusterv1.MachineStatus{}
		}
	}
}

func deleted(o metav1.Object) {
	t := metav1.NewTime(at(20))
	o.SetDeletionTimestamp(&t)
}

func sentences(p reconciler.Plan) []string {
	var out []string
	for _, a := range p.Actions {
		out = append(out, a.String())
	}
	return out
}

func reasons(p reconciler.Plan) []string {
	var out []string
	for _, w := range p.Waits {
		out = append(out, w.Reason)
	}
	return out
}
