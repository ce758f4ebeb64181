package clone

import (
	"maps"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/slipwayhq/slipway/internal/fault"
)

// Update changes the bootstrap config or infrastructure machine of an existing Machine so that it matches a newer
// template, when the Machine is updated in place (package inplace). Package machines calls it when the MachineSet
// controller begins the update. It returns the object that the field manager of clones applies, with the
// update-in-progress annotation. The labels and annotations in the options are excluded, because the owner applies them
// with another field manager. Values that others have set in the spec, such as a provider ID, are preserved.
func Update(live *unstructured.Unstructured, o Options) (*unstructured.Unstructured, error) {
	o.Name = live.GetName()
	fresh, err := New(o)
	if err != nil {
		return nil, err
	}
	if fresh.GetKind() != live.GetKind() || fresh.GroupVersionKind().Group != live.GroupVersionKind().Group {
		return nil, fault.New(fault.Invalid, "OtherKind", "%s %s cannot be updated to %s %s, which is the template of another kind: delete its Machine to replace it",
			live.GetKind(), live.GetName(), o.Template.GetKind(), o.Template.GetName())
	}
	labels, annotations := templateMetadata(o.Template, "labels"), templateMetadata(o.Template, "annotations")
	for key := range o.Labels {
		delete(labels, key)
	}
	delete(labels, clusterv1.ClusterNameLabel)
	for key := range o.Annotations {
		delete(annotations, key)
	}
	maps.Copy(annotations, map[string]string{
		clusterv1.TemplateClonedFromNameAnnotation:      o.Template.GetName(),
		clusterv1.TemplateClonedFromGroupKindAnnotation: o.Template.GroupVersionKind().GroupKind().String(),
		clusterv1.UpdateInProgressAnnotation:            "",
	})
	out := &unstructured.Unstructured{Object: map[string]any{"spec": fresh.Object["spec"]}}
	out.SetGroupVersionKind(fresh.GroupVersionKind())
	out.SetNamespace(live.GetNamespace())
	out.SetName(live.GetName())
	out.SetUID(live.GetUID()) // prevents the apply from recreating a clone that was deleted in the meantime
	out.SetAnnotations(annotations)
	if len(labels) > 0 {
		out.SetLabels(labels)
	}
	return out, nil
}
