package machinedeployment

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/slipwayhq/slipway/internal/rollout"
)

func TestDesired(t *testing.T) { // DP-03, DP-04, DP-05, DP-09, DP-16, FD-01
	s := settled(func(s *snapshot) {
		d := s.Deployment
		d.Annotations["kubectl.kubernetes.io/last-applied-configuration"] = "{}"
		d.Spec.Deletion.Order = clusterv1.NewestMachineSetDeletionOrder
		d.Spec.MachineNaming.Template = "x-{{ .random }}"
		d.Spec.Template.Annotations = map[string]string{"t": "1"}
		d.Spec.Template.Spec.Deletion.NodeDrainTimeoutSeconds = new(int32(9))
		d.Spec.Template.Spec.MinReadySeconds = new(int32(8))
		d.Spec.Template.Spec.FailureDomain = "zone-a"
		upgrade(s)
		onDelete(s)
	})
	d := s.Deployment
	unique := rollout.Hash(d.Spec.Template) + "-" + suffix(s, 2)
	labels := merged(d.Spec.Template.Labels, map[string]string{clusterv1.MachineDeploymentUniqueLabel: unique})
	template := *d.Spec.Template.DeepCopy()
	template.Labels = labels
	meta := func(name, revision string) metav1.ObjectMeta {
		return metav1.ObjectMeta{
			Namespace: "ns", Name: name, Finalizers: []string{clusterv1.MachineSetFinalizer},
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(d, clusterv1.GroupVersion.WithKind("MachineDeployment"))},
			Annotations: map[string]string{
				"team": "a", clusterv1.RevisionAnnotation: revision, clusterv1.DesiredReplicasAnnotation: "3", clusterv1.MaxReplicasAnnotation: "3",
				clusterv1.DisableMachineCreateAnnotation: "false",
			},
		}
	}
	spec := func(replicas int32, selector metav1.LabelSelector, template clusterv1.MachineTemplateSpec) clusterv1.MachineSetSpec {
		return clusterv1.MachineSetSpec{
			ClusterName: "c", Replicas: &replicas, Selector: selector, Template: template, MachineNaming: d.Spec.MachineNaming,
			Deletion: clusterv1.MachineSetDeletionSpec{Order: clusterv1.NewestMachineSetDeletionOrder},
		}
	}
	created := &clusterv1.MachineSet{ObjectMeta: meta("md-2", "2"), Spec: spec(1, metav1.LabelSelector{MatchLabels: labels}, template)}
	created.Labels = labels
	if diff := cmp.Diff(created, desired(s, setPlan{name: "md-2", replicas: 1, revision: 2, current: true})); diff != "" {
		t.Errorf("a new MachineSet (-want +got):\n%s", diff)
	}
	managed := s
	managed.Topology, managed.Deployment = true, d.DeepCopy()
	managed.Deployment.Labels = map[string]string{clusterv1.ClusterTopologyOwnedLabel: ""}
	want := []string{clusterv1.MachineSetFinalizer, clusterv1.MachineSetTopologyFinalizer}
	if diff := cmp.Diff(want, desired(managed, setPlan{name: "md-2", replicas: 1, revision: 2, current: true}).Finalizers); diff != "" {
		t.Errorf("finalizers of a new MachineSet of a topology (-want +got):\n%s", diff)
	}
	managed.Sets = []clusterv1.MachineSet{*s.Sets[0].DeepCopy()}
	managed.Sets[0].Finalizers = want[:1]
	if diff := cmp.Diff(want[:1], desired(managed, setPlan{name: "md-1", replicas: 1, revision: 1}).Finalizers); diff != "" {
		t.Errorf("one that is there keeps its own (-want +got):\n%s", diff)
	}
	managed.Sets[0].Finalizers = want
	if diff := cmp.Diff(want, desired(managed, setPlan{name: "md-1", replicas: 1, revision: 1}).Finalizers); diff != "" {
		t.Errorf("one that is there keeps its own (-want +got):\n%s", diff)
	}
	live := s.Sets[0]
	kept := *template.DeepCopy()
	kept.Labels = merged(d.Spec.Template.Labels, live.Spec.Selector.MatchLabels)
	kept.Spec.Version, kept.Spec.FailureDomain = "v1.36.3", ""
	old := &clusterv1.MachineSet{ObjectMeta: meta("md-1", "1"), Spec: spec(2, live.Spec.Selector, kept)}
	old.Labels = kept.Labels
	old.Annotations[clusterv1.DisableMachineCreateAnnotation] = "true"
	if diff := cmp.Diff(old, desired(s, setPlan{name: "md-1", replicas: 2, revision: 1})); diff != "" {
		t.Errorf("an old MachineSet keeps what its Machines were made of (-want +got):\n%s", diff)
	}
	again := desired(s, setPlan{name: "md-1", replicas: 2, revision: 3, current: true})
	if again.Spec.Selector.MatchLabels[clusterv1.MachineDeploymentUniqueLabel] != live.Spec.Selector.MatchLabels[clusterv1.MachineDeploymentUniqueLabel] ||
		again.Spec.Template.Labels[clusterv1.MachineDeploymentUniqueLabel] != live.Spec.Selector.MatchLabels[clusterv1.MachineDeploymentUniqueLabel] {
		t.Error("DP-03: the hash of a MachineSet changes")
	}
	if again.Annotations[clusterv1.DisableMachineCreateAnnotation] != "false" {
		t.Error("DP-09: the current MachineSet may not make Machines")
	}
}
