package clone

import (
	"maps"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/slipwayhq/slipway/internal/fault"
)

// Update returns the object that the clone's field manager applies to turn the clone into a clone of another
// template, including the update-in-progress annotation. It excludes the request's labels and annotations, which
// another field manager applies. Values that others have set in the spec, such as a provider ID, are preserved.
func Update(live *unstructured.Unstructured, r Options) (*unstructured.Unstructured, error) {
	r.Name = live.GetName()
	fresh, err := New(r)
	if err != nil {
		return nil, err
	}
	if fresh.GetKind() != live.GetKind() || fresh.GroupVersionKind().Group != live.GroupVersionKind().Group {
		return nil, fault.New(fault.Invalid, "OtherKind", "%s %s cannot become what %s %s describes: delete its Machine to replace it",
			live.GetKind(), live.GetName(), r.Template.GetKind(), r.Template.GetName())
	}
	labels, annotations := templateMetadata(r.Template, "labels"), templateMetadata(r.Template, "annotations")
	for key := range r.Labels {
		delete(labels, key)
	}
	delete(labels, clusterv1.ClusterNameLabel)
	for key := range r.Annotations {
		delete(annotations, key)
	}
	maps.Copy(annotations, map[string]string{
		clusterv1.TemplateClonedFromNameAnnotation:      r.Template.GetName(),
		clusterv1.TemplateClonedFromGroupKindAnnotation: r.Template.GroupVersionKind().GroupKind().String(),
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
