package clone

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// Origin is the template from which a Machine was created, with the parts that are known. Package machines compares it
// with the owner's template.
type Origin struct {
	Template clusterv1.MachineTemplateSpec
	// Unknown has a line for each part whose origin is unknown; Template contains the desired value for these
	// parts.
	Unknown []string
}

// OriginOf determines the template from which a Machine was created, using the annotations of its clones. Package
// machines computes the UpToDate condition of the Machines of standalone MachineSets from it. Clones of an adopted
// Machine may lack these annotations because another program created them; the comparison is then limited to the other
// parts. It returns false if the clones were not read or do not exist. A nil receiver has no clones.
func (c *Clones) OriginOf(m *clusterv1.Machine, desired clusterv1.MachineSpec) (Origin, bool) {
	if c == nil {
		return Origin{}, false
	}
	var o Origin
	o.Template.Spec = clusterv1.MachineSpec{Version: m.Spec.Version, Bootstrap: m.Spec.Bootstrap}
	if desired.FailureDomain != "" { // otherwise the infrastructure chose one
		o.Template.Spec.FailureDomain = m.Spec.FailureDomain
	}
	for _, part := range []struct {
		have, want clusterv1.ContractVersionedObjectReference
		into       *clusterv1.ContractVersionedObjectReference
	}{
		{m.Spec.Bootstrap.ConfigRef, desired.Bootstrap.ConfigRef, &o.Template.Spec.Bootstrap.ConfigRef},
		{m.Spec.InfrastructureRef, desired.InfrastructureRef, &o.Template.Spec.InfrastructureRef},
	} {
		if !part.have.IsDefined() {
			continue
		}
		clone, ok := c.Items[Key{part.have.Kind, part.have.Name}]
		if !ok {
			return Origin{}, false
		}
		from, ok := ClonedFrom(clone)
		if !ok {
			from = part.want
			o.Unknown = append(o.Unknown, fmt.Sprintf(
				"* %s %s does not say which template it was created from: name it in its annotations %s and %s, or replace the Machine",
				part.have.Kind, part.have.Name,
				clusterv1.TemplateClonedFromNameAnnotation, clusterv1.TemplateClonedFromGroupKindAnnotation))
		}
		*part.into = from
	}
	return o, true
}

// ClonedFrom returns the template that an object's annotations name, and whether they name one. The KubeadmControlPlane
// controller compares it with its template to find outdated Machines.
func ClonedFrom(o metav1.Object) (clusterv1.ContractVersionedObjectReference, bool) {
	a := o.GetAnnotations()
	kind := schema.ParseGroupKind(a[clusterv1.TemplateClonedFromGroupKindAnnotation])
	name := a[clusterv1.TemplateClonedFromNameAnnotation]
	ref := clusterv1.ContractVersionedObjectReference{APIGroup: kind.Group, Kind: kind.Kind, Name: name}
	return ref, name != "" && kind.Kind != ""
}
