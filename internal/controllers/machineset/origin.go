package machineset

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// origin is the template that a Machine of a standalone set was made from, as far as can be told.
type origin struct {
	template clusterv1.MachineTemplateSpec
	// unknown has a line for each part of which it cannot be told; the template then has what the set says.
	unknown []string
}

// originOf tells from what a Machine was made: its clones remember their templates (MS-05). Those of a Machine that was
// adopted may not, since somebody else made them; then the rest is compared. Not known is all while a clone is not there.
func originOf(s Snapshot, m *clusterv1.Machine) (origin, bool) {
	if s.Clones == nil {
		return origin{}, false
	}
	want, o := s.Set.Spec.Template.Spec, origin{}
	o.template.Spec = clusterv1.MachineSpec{Version: m.Spec.Version, Bootstrap: m.Spec.Bootstrap}
	if want.FailureDomain != "" { // else the infrastructure chose one
		o.template.Spec.FailureDomain = m.Spec.FailureDomain
	}
	for _, part := range []struct {
		have, want clusterv1.ContractVersionedObjectReference
		into       *clusterv1.ContractVersionedObjectReference
	}{
		{m.Spec.Bootstrap.ConfigRef, want.Bootstrap.ConfigRef, &o.template.Spec.Bootstrap.ConfigRef},
		{m.Spec.InfrastructureRef, want.InfrastructureRef, &o.template.Spec.InfrastructureRef},
	} {
		if !part.have.IsDefined() {
			continue
		}
		clone, ok := s.Clones.Items[cloneKey{part.have.Kind, part.have.Name}]
		if !ok {
			return origin{}, false
		}
		from, ok := clonedFrom(clone)
		if !ok {
			from = part.want
			o.unknown = append(o.unknown, fmt.Sprintf(
				"* %s %s does not say which template it was made from: name it in its annotations %s and %s, or replace the Machine",
				part.have.Kind, part.have.Name,
				clusterv1.TemplateClonedFromNameAnnotation, clusterv1.TemplateClonedFromGroupKindAnnotation))
		}
		*part.into = from
	}
	return o, true
}

// clonedFrom is the template of an object, as its annotations say; not ok: they do not.
func clonedFrom(o metav1.Object) (clusterv1.ContractVersionedObjectReference, bool) {
	a := o.GetAnnotations()
	kind := schema.ParseGroupKind(a[clusterv1.TemplateClonedFromGroupKindAnnotation])
	name := a[clusterv1.TemplateClonedFromNameAnnotation]
	ref := clusterv1.ContractVersionedObjectReference{APIGroup: kind.Group, Kind: kind.Kind, Name: name}
	return ref, name != "" && kind.Kind != ""
}

// undecided reports whether a Machine has to be looked at again, since it cannot be told yet whether it is up to date.
func undecided(s Snapshot, m Member) bool {
	if m.Deleted || s.Deployment != nil {
		return false
	}
	o, known := originOf(s, m.Machine)
	return len(o.unknown) > 0 || !known && of(m.Machine, clusterv1.MachineUpToDateCondition) == nil
}
