package machinedeployment

import (
	"maps"
	"slices"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/slipwayhq/slipway/internal/conversion"
	"github.com/slipwayhq/slipway/internal/kube"
	"github.com/slipwayhq/slipway/internal/machines/clone"
	"github.com/slipwayhq/slipway/internal/reconciler/ownership"
	"github.com/slipwayhq/slipway/internal/rollout"
)

// setPlan is the part of the plan for one MachineSet. [decide] compares the MachineSet with the desired one, and the
// actions [createSet] and [syncSet] apply the desired one.
type setPlan struct {
	name     string
	replicas int32
	revision int64
	current  bool // the MachineSet of the current template
	moves
}

// nameOf returns the name of the MachineSet for a revision. The name is derived from the content of the revision,
// so that a creation that is repeated after a crash does not create a second MachineSet. rolloutOf and the check of
// in-place updates call it.
func nameOf(s snapshot, revision int64) string {
	const room = 63 - 6 // names of Machines start with it, and should fit into labels
	name := s.Deployment.Name
	return name[:min(len(name), room)] + "-" + suffix(s, revision)
}

func suffix(s snapshot, revision int64) string {
	return rollout.Suffix(string(s.Deployment.UID), strconv.FormatInt(revision, 10), rollout.Hash(s.Deployment.Spec.Template))
}

// desiredObject returns the MachineSet with all fields that the controller sets, ready to be applied. A field that is
// not in it any more is removed from existing MachineSets. decideSet compares it with the existing MachineSet, and act
// applies it.
func desiredObject(s snapshot, p setPlan) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{}}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(desired(s, p))
	if err != nil {
		panic("machinedeployment: a MachineSet cannot be encoded: " + err.Error())
	}
	u.Object = content
	u.SetGroupVersionKind(clusterv1.GroupVersion.WithKind("MachineSet"))
	unstructured.RemoveNestedField(u.Object, "status")
	unstructured.RemoveNestedField(u.Object, "metadata", "creationTimestamp")
	return u
}

// desired returns the desired MachineSet. MachineSets of older templates retain the fields that their Machines
// cannot update in place and follow the deployment in all others, because with OnDelete or during a pause their
// Machines may exist for a long time.
func desired(s snapshot, p setPlan) *clusterv1.MachineSet {
	d := s.Deployment
	set := &clusterv1.MachineSet{ObjectMeta: metav1.ObjectMeta{
		Namespace: d.Namespace, Name: p.name, Annotations: annotations(s, p), Finalizers: finalizers(s, p),
		OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(d, clusterv1.GroupVersion.WithKind(kind))},
	}}
	set.Spec = clusterv1.MachineSetSpec{
		ClusterName: d.Spec.ClusterName, Replicas: &p.replicas, MachineNaming: d.Spec.MachineNaming,
		Deletion: clusterv1.MachineSetDeletionSpec{Order: d.Spec.Deletion.Order},
	}
	live := setNamed(s, p.name)
	switch {
	case live == nil:
		unique := map[string]string{clusterv1.MachineDeploymentUniqueLabel: rollout.Hash(d.Spec.Template) + "-" + suffix(s, p.revision)}
		set.Spec.Selector = *d.Spec.Selector.DeepCopy()
		set.Spec.Selector.MatchLabels = merged(set.Spec.Selector.MatchLabels, unique)
		set.Spec.Template = template(d, set.Spec.Selector.MatchLabels)
	default:
		set.Spec.Selector = live.Spec.Selector
		set.Spec.Template = template(d, live.Spec.Selector.MatchLabels)
		if !p.current {
			set.Spec.Template = rollout.InPlaceTemplate(live.Spec.Template, set.Spec.Template)
		}
	}
	set.Labels = ownership.PassWatchLabel(d, set.Spec.Template.Labels)
	return set
}

// finalizers returns the finalizers of a MachineSet that its controller would otherwise add in a separate write.
func finalizers(s snapshot, p setPlan) []string {
	out, live := []string{clusterv1.MachineSetFinalizer}, setNamed(s, p.name)
	if live == nil && s.Topology && clone.IsOfTopology(s.Deployment) || live != nil && slices.Contains(live.Finalizers, clusterv1.MachineSetTopologyFinalizer) {
		out = append(out, clusterv1.MachineSetTopologyFinalizer)
	}
	return out
}

// template returns the deployment's template with the labels with which the MachineSet selects its Machines.
func template(d *clusterv1.MachineDeployment, selected map[string]string) clusterv1.MachineTemplateSpec {
	t := *d.Spec.Template.DeepCopy()
	t.Labels = merged(t.Labels, selected, map[string]string{
		clusterv1.ClusterNameLabel: d.Spec.ClusterName, clusterv1.MachineDeploymentNameLabel: d.Name,
	})
	return t
}

// annotations returns the annotations of a MachineSet: the deployment's and those of the rollout. The annotation
// that disables the creation of Machines is always set, so that a value from another implementation is overwritten
// when the MachineSet becomes the current one.
func annotations(s snapshot, p setPlan) map[string]string {
	out := maps.Clone(s.Deployment.Annotations)
	if out == nil {
		out = map[string]string{}
	}
	for _, key := range ownAnnotations() {
		delete(out, key)
	}
	replicas := ptr.Deref(s.Deployment.Spec.Replicas, 0)
	out[clusterv1.RevisionAnnotation] = strconv.FormatInt(p.revision, 10)
	out[clusterv1.DesiredReplicasAnnotation] = strconv.Itoa(int(replicas))
	limits, err := rollout.Resolve(s.Deployment.Spec.Rollout.Strategy, replicas)
	if err == nil {
		out[clusterv1.MaxReplicasAnnotation] = strconv.Itoa(int(replicas + limits.MaxSurge))
	}
	out[clusterv1.DisableMachineCreateAnnotation] = strconv.FormatBool(limits.OnDelete && !p.current)
	p.annotate(out, setNamed(s, p.name))
	return out
}

// ownAnnotations returns the annotations of a deployment that do not apply to its MachineSets.
func ownAnnotations() []string {
	return []string{
		"kubectl.kubernetes.io/last-applied-configuration", clusterv1.RevisionAnnotation, clusterv1.DesiredReplicasAnnotation,
		clusterv1.MaxReplicasAnnotation, clusterv1.CRDMigrationObservedGenerationAnnotation, conversion.DataAnnotation,
		clusterv1.MachineSetMoveMachinesToMachineSetAnnotation, clusterv1.MachineSetReceiveMachinesFromMachineSetsAnnotation,
		clusterv1.AcknowledgedMoveAnnotation,
	}
}

// withForeign returns the desired object with the finalizers and owners of other writers, so that these do not count as
// differences. Decide compares this with the current MachineSet to determine whether a write is needed.
func withForeign(live *clusterv1.MachineSet, want *unstructured.Unstructured) *unstructured.Unstructured {
	out := want.DeepCopy()
	if slices.Contains(live.Finalizers, clusterv1.MachineSetFinalizer) {
		out.SetFinalizers(live.Finalizers)
	}
	owners := out.GetOwnerReferences()
	if slices.ContainsFunc(live.OwnerReferences, func(ref metav1.OwnerReference) bool { return sameOwner(ref, owners[0]) }) {
		out.SetOwnerReferences(live.OwnerReferences)
	}
	return out
}

// formerManager is the field manager of MachineSets in Cluster API's own controller.
const formerManager = kube.CoreManagerPrefix + "machinedeployment"

// fieldTransfer describes the transfer of field ownership from Cluster API's own controller. Finalizers are excluded,
// because it also claims finalizers of other writers. act transfers the fields before it applies the MachineSet.
func fieldTransfer() kube.OwnershipTransfer {
	return kube.OwnershipTransfer{From: []string{formerManager}, To: kube.ManagerPrefix + Name, Takes: func(p fieldpath.Path) bool {
		return len(p) < 2 || p[1].FieldName == nil || *p[1].FieldName != "finalizers"
	}}
}

func sameOwner(a, b metav1.OwnerReference) bool {
	return a.UID == b.UID && a.APIVersion == b.APIVersion && a.Kind == b.Kind && a.Name == b.Name &&
		ptr.Deref(a.Controller, false) == ptr.Deref(b.Controller, false) &&
		ptr.Deref(a.BlockOwnerDeletion, false) == ptr.Deref(b.BlockOwnerDeletion, false)
}

func setNamed(s snapshot, name string) *clusterv1.MachineSet {
	for i := range s.Sets {
		if s.Sets[i].Name == name {
			return &s.Sets[i]
		}
	}
	return nil
}

// merged returns the union of maps. Values in later maps take precedence.
func merged(all ...map[string]string) map[string]string {
	out := map[string]string{}
	for _, m := range all {
		maps.Copy(out, m)
	}
	return out
}

// Desired returns the MachineSet after the action, without fields that the API server sets.
func (a createSet) Desired(s snapshot) *clusterv1.MachineSet { return desired(s, a.share()) }

// Desired returns the MachineSet after the action, with the fields that the deployment sets.
func (a syncSet) Desired(s snapshot) *clusterv1.MachineSet { return desired(s, a.share()) }

func (a createSet) share() setPlan {
	return setPlan{name: a.Name, replicas: a.Replicas, revision: a.Revision, current: true, moves: a.moves}
}

func (a syncSet) share() setPlan {
	return setPlan{name: a.Name, replicas: a.Replicas, revision: a.Revision, current: a.Current, moves: a.moves}
}
