package machinedeployment

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	infrav1 "github.com/slipwayhq/slipway/api/infrastructure/v1alpha1"
	"github.com/slipwayhq/slipway/internal/condition"
)

// TestTakeoverFromTheReferenceImplementation gives the controller a deployment in the middle of a rollout with OnDelete, and its
// MachineSets with the field managers and annotations that the controllers of the reference implementation leave:
// capi-machinedeployment by server-side apply, with finalizers that others have set; manager for the finalizer and every status.
func TestTakeoverFromTheReferenceImplementation(t *testing.T) { // DP-02, DP-04, DP-05, DP-09, MS-09, MS-11
	l := startLive(t)
	l.plant()
	l.pause(false)
	l.eventually("the MachineSets are taken over", func() bool {
		sets := l.sets()
		return len(sets) == 2 && !slices.ContainsFunc(sets, func(set clusterv1.MachineSet) bool { return fieldTransfer().HasChanges(&set) }) &&
			condition.Set(l.d.Status.Conditions).IsTrue(clusterv1.MachineDeploymentAvailableCondition)
	})
	if stranger := condition.Set(l.d.Status.Conditions).Get("Stranger"); stranger == nil || l.d.Status.Deprecated.V1Beta1.UnavailableReplicas != 0 {
		t.Errorf("status %+v", l.d.Status)
	}
	l.change(func(d *clusterv1.MachineDeployment) {
		delete(d.Annotations, "team")
		delete(d.Spec.Template.Labels, "old")
		d.Spec.Template.Spec.Taints, d.Spec.Template.Spec.ReadinessGates = nil, nil
	})
	l.eventually("what the deployment does not say any more goes", func() bool {
		for _, set := range l.sets() {
			template := set.Spec.Template
			_, label := set.Labels["old"]
			_, ofMachines := template.Labels["old"]
			_, annotation := set.Annotations["team"]
			if label || ofMachines || annotation || len(template.Spec.Taints)+len(template.Spec.ReadinessGates) > 0 || set.Annotations["foreign"] != "stays" ||
				!slices.Equal(set.Finalizers, []string{clusterv1.MachineSetFinalizer, "test.slipway.dev/foreign"}) || set.Labels[clusterv1.MachineDeploymentUniqueLabel] == "" {
				return false
			}
		}
		return true
	})
	if got := l.disabled(); got["md-1"] != "true" || got["md-2"] != "false" {
		t.Errorf("DP-09: %v", got)
	}
	l.change(func(d *clusterv1.MachineDeployment) { d.Spec.Template.Spec.Version = "v1.36.3" })
	l.eventually("a MachineSet that becomes current again may create Machines", func() bool {
		got := l.disabled()
		return got["md-1"] == "false" && got["md-2"] == "true" && l.d.Annotations[clusterv1.RevisionAnnotation] == "3"
	})
	l.must(l.DeleteAllOf(t.Context(), &clusterv1.Machine{}, client.InNamespace("ns"), client.MatchingLabels{clusterv1.MachineSetNameLabel: "md-2"}))
	l.eventually("and does", func() bool {
		for _, set := range l.sets() {
			if set.Name == "md-1" && replicasOf(&set) == 3 {
				return true
			}
		}
		return false
	})
}

// disabled tells for each MachineSet what it says about creating Machines.
func (l live) disabled() map[string]string {
	out := map[string]string{}
	for _, set := range l.sets() {
		out[set.Name] = set.Annotations[clusterv1.DisableMachineCreateAnnotation]
	}
	return out
}

func (l live) pause(paused bool) {
	l.t.Helper()
	c := &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "c"}}
	l.must(l.Get(l.t.Context(), client.ObjectKeyFromObject(c), c))
	before := c.DeepCopy()
	c.Spec.Paused = &paused
	l.must(l.Patch(l.t.Context(), c, client.MergeFrom(before)))
}

// plant makes a paused Cluster with a deployment of three replicas: two of v1.36.3 in md-1, one of v1.36.4 in md-2.
func (l live) plant() {
	meta := func(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: "ns", Name: name} }
	cluster := &clusterv1.Cluster{ObjectMeta: meta("c")}
	cluster.Spec.InfrastructureRef = clusterv1.ContractVersionedObjectReference{APIGroup: infrav1.GroupVersion.Group, Kind: "LocalCluster", Name: "c"}
	cluster.Spec.Paused = new(true)
	infra := &infrav1.LocalMachineTemplate{ObjectMeta: meta("i")}
	infra.Spec.Template.Spec.Backend.Container = &infrav1.ContainerMachine{}
	bootstrap := &bootstrapv1.KubeadmConfigTemplate{ObjectMeta: meta("b")}
	bootstrap.Spec.Template.Spec.Verbosity = new(int32(1))
	for _, o := range []client.Object{cluster, infra, bootstrap} {
		l.must(l.Create(l.t.Context(), o))
	}
	user := raw()
	l.d.Spec, l.d.Annotations = user.Spec, user.Annotations
	l.d.Spec.Rollout.Strategy.Type = clusterv1.OnDeleteMachineDeploymentStrategyType
	template := &l.d.Spec.Template
	template.Labels = merged(template.Labels, map[string]string{"old": "1"})
	template.Spec.InfrastructureRef = clusterv1.ContractVersionedObjectReference{APIGroup: infrav1.GroupVersion.Group, Kind: "LocalMachineTemplate", Name: "i"}
	template.Spec.Bootstrap.ConfigRef = clusterv1.ContractVersionedObjectReference{APIGroup: bootstrapv1.GroupVersion.Group, Kind: "KubeadmConfigTemplate", Name: "b"}
	template.Spec.Version = "v1.36.4"
	template.Spec.Taints = []clusterv1.MachineTaint{{Key: "k", Effect: corev1.TaintEffectNoSchedule, Propagation: clusterv1.MachineTaintPropagationAlways}}
	template.Spec.ReadinessGates = []clusterv1.MachineReadinessGate{{ConditionType: "Gate"}}
	l.must(l.Create(l.t.Context(), l.d, client.FieldOwner("user")))
	l.plantSet("md-1", "v1.36.3", 2, map[string]string{clusterv1.RevisionAnnotation: "1", clusterv1.DisableMachineCreateAnnotation: "true"})
	l.plantSet("md-2", "v1.36.4", 1, map[string]string{clusterv1.RevisionAnnotation: "2", clusterv1.DisableMachineCreateAnnotation: "false"})
	before := l.d.DeepCopy()
	l.d.Finalizers = []string{clusterv1.MachineDeploymentFinalizer}
	l.d.Annotations[clusterv1.RevisionAnnotation] = "2"
	l.must(l.Patch(l.t.Context(), l.d, client.MergeFrom(before), client.FieldOwner("manager")))
	before = l.d.DeepCopy()
	l.d.Status = clusterv1.MachineDeploymentStatus{
		ObservedGeneration: l.d.Generation, Phase: "Running", Replicas: new(int32(3)),
		Deprecated: &clusterv1.MachineDeploymentDeprecatedStatus{V1Beta1: &clusterv1.MachineDeploymentV1Beta1DeprecatedStatus{UnavailableReplicas: 2}},
		Conditions: []metav1.Condition{{Type: "Stranger", Status: "True", Reason: "Said", LastTransitionTime: metav1.Now()}},
	}
	l.must(l.Status().Patch(l.t.Context(), l.d, client.MergeFrom(before), client.FieldOwner("manager")))
}

// plantSet makes a MachineSet in the steps in which the reference implementation does.
func (l live) plantSet(name, version string, replicas int32, annotations map[string]string) {
	unique := map[string]string{clusterv1.MachineDeploymentUniqueLabel: "123456-" + name}
	set := &clusterv1.MachineSet{ObjectMeta: metav1.ObjectMeta{
		Namespace: "ns", Name: name, Labels: merged(l.d.Spec.Template.Labels, unique),
		Annotations: merged(annotations, map[string]string{
			"team": "a", clusterv1.DesiredReplicasAnnotation: "3", clusterv1.MaxReplicasAnnotation: "3",
		}),
		OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(l.d, clusterv1.GroupVersion.WithKind(kind))},
	}}
	set.Spec = clusterv1.MachineSetSpec{ClusterName: "c", Replicas: &replicas, Selector: *l.d.Spec.Selector.DeepCopy(), Template: *l.d.Spec.Template.DeepCopy()}
	set.Spec.Selector.MatchLabels = merged(set.Spec.Selector.MatchLabels, unique)
	set.Spec.Template.Labels, set.Spec.Template.Spec.Version = set.Labels, version
	apply := func() {
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(set)
		l.must(err)
		u := &unstructured.Unstructured{Object: content}
		u.SetGroupVersionKind(clusterv1.GroupVersion.WithKind("MachineSet"))
		unstructured.RemoveNestedField(u.Object, "status")
		unstructured.RemoveNestedField(u.Object, "metadata", "creationTimestamp")
		l.must(l.Apply(l.t.Context(), client.ApplyConfigurationFromUnstructured(u), client.FieldOwner("capi-machinedeployment"), client.ForceOwnership))
	}
	apply()
	live := &clusterv1.MachineSet{}
	for owner, finalizer := range map[string]string{"manager": clusterv1.MachineSetFinalizer, "somebody": "test.slipway.dev/foreign"} {
		l.must(l.Get(l.t.Context(), client.ObjectKeyFromObject(set), live))
		before := live.DeepCopy()
		live.Finalizers = append(live.Finalizers, finalizer)
		slices.Sort(live.Finalizers)
		if owner == "somebody" {
			live.Annotations["foreign"] = "stays"
		}
		l.must(l.Patch(l.t.Context(), live, client.MergeFrom(before), client.FieldOwner(owner)))
	}
	set.Finalizers = live.Finalizers
	apply()
	l.must(l.Get(l.t.Context(), client.ObjectKeyFromObject(set), live))
	before := live.DeepCopy()
	live.Status = clusterv1.MachineSetStatus{Replicas: &replicas, ObservedGeneration: live.Generation}
	l.must(l.Status().Patch(l.t.Context(), live, client.MergeFrom(before), client.FieldOwner("manager")))
	for range replicas {
		l.createMachine(live)
	}
}
